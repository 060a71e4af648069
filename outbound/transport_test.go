package outbound_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func operation(t *testing.T, rt *outbound.Transport) pacer.OperationStats {
	t.Helper()
	s := rt.Stats()
	if len(s.Operations) != 1 {
		t.Fatalf("%d operations", len(s.Operations))
	}
	return s.Operations[0]
}

// closing is a request body that knows whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestARefusalClosesTheBodyAndSendsNothing(t *testing.T) {
	open := errors.New("circuit is open")
	spent := outbound.NewAttempts(0)
	for name, c := range map[string]struct {
		o      outbound.Options
		ctx    context.Context
		reason pacer.Reason
	}{
		"rate zero": {outbound.Options{Rate: neverLimiter{}}, context.Background(), pacer.NotAdmissible},
		"job spent": {outbound.Options{}, spent.Context(context.Background()), pacer.AttemptsSpent},
		"breaker": {outbound.Options{Breaker: func(*http.Request) outbound.Breaker {
			return outbound.Breaker{Execute: func(func() (*http.Response, error)) (*http.Response, error) { return nil, open }}
		}}, context.Background(), pacer.BreakerOpen},
	} {
		bubble(t, name, func(t *testing.T) {
			c.o.Base = tripper(func(*http.Request) (*http.Response, error) {
				t.Error("the call was sent")
				return nil, errors.New("unreachable")
			})
			rt := outbound.MustNew(c.o)
			body := &closing{Reader: strings.NewReader("x")}
			req, _ := http.NewRequestWithContext(c.ctx, http.MethodPost, "http://service.test/", body)
			_, err := rt.RoundTrip(req)
			var r *pacer.Refusal
			if !errors.As(err, &r) || r.Reason != c.reason || !body.closed {
				t.Errorf("error %v, body closed: %v", err, body.closed)
			}
			if name == "breaker" && !errors.Is(err, open) {
				t.Errorf("%v hides the breaker's own error", err)
			}
		})
	}
}

func TestARunThatAlwaysFailsEndsAtItsBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(500)}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)})
		job := outbound.NewAttempts(25)
		ctx := job.Context(t.Context())
		var err error
		for range 1000 {
			if _, _, err = get(t, ctx, rt); err != nil {
				break
			}
		}
		var r *pacer.Refusal
		if !errors.As(err, &r) || r.Reason != pacer.AttemptsSpent {
			t.Errorf("error %v", err)
		}
		if s.attempts() != 25 || job.Used() != 25 || job.Left() != 0 || job.Take() {
			t.Errorf("%d arrived, %d used, %d left", s.attempts(), job.Used(), job.Left())
		}
	})
}

func TestTheDeadlineAndTheLevelGoOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		s := &script{steps: []http.HandlerFunc{says(500), says(200)}}
		base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Get("X-Timeout")+" "+r.Header.Get("X-Priority"))
			s.ServeHTTP(w, r)
		})
		rt := outbound.MustNew(outbound.Options{Base: base, LevelHeader: "x-priority", Rate: ratelimit.PerKey(1, 1)})
		ctx, cancel := context.WithTimeout(priority.NewContext(t.Context(), priority.High), 2500*time.Millisecond)
		defer cancel()
		if status, _, err := get(t, ctx, rt); err != nil || status != 200 {
			t.Fatal(status, err)
		}
		if len(got) != 2 || got[0] != "2500 high" || got[1] != "1500 high" {
			t.Errorf("sent %q, want what is left when each attempt is sent", got)
		}
		rt = outbound.MustNew(outbound.Options{Base: base, DeadlineHeader: outbound.NoHeader})
		if _, _, err := get(t, ctx, rt); err != nil || got[2] != " " {
			t.Errorf("sent %q, %v without being asked to", got[2], err)
		}
	})
}

// A proxy's request has the fields of its own caller in it.
func TestFieldsOfTheCallerAreNotPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got http.Header
		rt := outbound.MustNew(outbound.Options{LevelHeader: "X-Priority", Base: tripper(func(r *http.Request) (*http.Response, error) {
			got = r.Header
			return answer(r, 200), nil
		})})
		send := func(ctx context.Context) {
			req := newRequest(t, "http://service.test/").WithContext(ctx)
			req.Header.Set("X-Timeout", "60000")
			req.Header.Set("X-Priority", "critical")
			call(t, rt, req)
			if req.Header.Get("X-Timeout") != "60000" {
				t.Error("the caller's request was changed")
			}
		}
		ctx, cancel := context.WithTimeout(priority.NewContext(t.Context(), priority.Batch), 2500*time.Millisecond)
		defer cancel()
		send(ctx)
		if got.Get("X-Timeout") != "2500" || got.Get("X-Priority") != "batch" {
			t.Errorf("sent %v, want what is left and the level of the context", got)
		}
		send(t.Context())
		if _, ok := got["X-Timeout"]; ok || got.Get("X-Priority") != "" {
			t.Errorf("sent %v, want neither field", got)
		}
	})
}

func TestAnAttemptTimesOutAndAnotherFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			func(w http.ResponseWriter, r *http.Request) { // the header in time, the body much later
				w.WriteHeader(200)
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Second)
				_, _ = io.WriteString(w, "late")
			},
		}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP), AttemptTimeout: time.Second})
		start := time.Now()
		status, body, err := get(t, t.Context(), rt)
		if err != nil || status != 200 || body != "late" {
			t.Fatalf("status %d, body %q, error %v", status, body, err)
		}
		if took := time.Since(start); took < 11*time.Second || took > 12*time.Second {
			t.Errorf("took %v", took)
		}
		if o := operation(t, rt); o.InFlight != 0 || o.Ended[verdict.Transient] != 1 {
			t.Errorf("%+v", o)
		}
	})
}

func TestACallersTraceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := outbound.MustNew(outbound.Options{Base: serve(t, says(200)), CountResends: true, AttemptTimeout: time.Second})
		wrote := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { wrote++ }})
		if _, _, err := get(t, ctx, rt); err != nil || wrote != 1 {
			t.Errorf("caller's trace called %d times, error %v", wrote, err)
		}
		if o := operation(t, rt); o.Attempts != 1 || o.Resends != 0 {
			t.Errorf("%+v", o)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]outbound.Options{
		"MaxWait":        {MaxWait: -1},
		"MaxPause":       {MaxPause: -1},
		"MaxOperations":  {MaxOperations: -1},
		"Rate":           {Rate: ratelimit.PerKey(-1, 1)},
		"Budget":         {Budget: pacer.BudgetOptions{Ratio: -3}},
		"InFlight":       {InFlight: shed.Fixed(0)},
		"Attempts":       {Retry: outbound.RetryOptions{Attempts: -1}},
		"MinBackoff":     {Retry: outbound.RetryOptions{MinBackoff: time.Hour}},
		"AttemptTimeout": {AttemptTimeout: -1},
		"Classify[0]":    {Classify: []outbound.Classifier{nil}},
		"DeadlineHeader": {DeadlineHeader: "X Timeout"},
		"LevelHeader":    {LevelHeader: "a\r\nb"},
		"Pacer":          {Pacer: new(pacer.Pacer), MaxWait: 1},
	} {
		if _, err := outbound.New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v does not name the field", name, err)
		}
	}
	if _, err := outbound.New(outbound.Options{}); err != nil {
		t.Errorf("zero Options: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("MustNew accepted a negative MaxWait")
		}
	}()
	outbound.MustNew(outbound.Options{MaxWait: -1})
}

var _ http.RoundTripper = (*outbound.Transport)(nil)
