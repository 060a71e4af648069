package outbound_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func operation(t *testing.T, rt *outbound.Transport) outbound.OperationStats {
	t.Helper()
	s := rt.Stats()
	if len(s.Operations) != 1 {
		t.Fatalf("%d operations", len(s.Operations))
	}
	return s.Operations[0]
}

func TestRedirectsAndRetriesPay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(302, "Location", "/there"), says(503), says(200)}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP), Rate: ratelimit.PerKey(1, 3)})
		resp, err := (&http.Client{Transport: rt}).Get("http://service.test/")
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		if o := operation(t, rt); o.Attempts != 3 || o.Retries != 1 || o.Ended[outbound.Overloaded] != 1 || o.Ended[outbound.OK] != 2 {
			t.Errorf("%+v", o)
		}
	})
}

// deadConnections serves keep-alive connections that die after one answer, as a
// server behind an impatient proxy does.
func deadConnections(t *testing.T) *http.Transport {
	var dials atomic.Int32
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, far := net.Pipe()
		first := dials.Add(1) == 1
		go func() {
			r := bufio.NewReader(far)
			for n := 0; ; n++ {
				req, err := http.ReadRequest(r)
				if err != nil || first && n == 1 { // the second request is read, and never answered
					far.Close()
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}()
		t.Cleanup(func() { client.Close() })
		return client, nil
	}}
}

func TestWhatNetHTTPSendsAgainIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := deadConnections(t)
		rt := outbound.MustNew(outbound.Options{
			Base: base, Rate: ratelimit.PerKey(0.001, 10), CountResends: true, MaxWait: time.Second,
		})
		job := outbound.NewAttempts(100)
		for range 2 {
			if status, _, err := get(t, job.Context(t.Context()), rt); err != nil || status != 200 {
				t.Fatal(status, err)
			}
		}
		if o := operation(t, rt); o.Attempts != 3 || o.Resends != 1 || job.Used() != 3 {
			t.Errorf("%d attempts, %d resends, %d charged to the job; want 3, 1, 3", o.Attempts, o.Resends, job.Used())
		}
		for range 7 { // seven tokens are left of ten
			if _, _, err := get(t, t.Context(), rt); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := get(t, t.Context(), rt); !errors.Is(err, outbound.ErrLocal) {
			t.Errorf("the eleventh send: %v", err)
		}
		base.CloseIdleConnections()
	})
}

func TestADebtIsPaidByTheNextToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := deadConnections(t)
		rt := outbound.MustNew(outbound.Options{Base: base, Rate: ratelimit.PerKey(1, 2), CountResends: true})
		for range 2 { // the second is sent twice, with an empty bucket
			if _, _, err := get(t, t.Context(), rt); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if _, _, err := get(t, t.Context(), rt); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("the next call waited %v, %v; want 1 s for the debt and 1 s for itself", time.Since(start), err)
		}
		base.CloseIdleConnections()
	})
}

func TestWhatNeverLeftIsNotCharged(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, counting := range []bool{false, true} {
		bubble(t, fmt.Sprint("counting resends ", counting), func(t *testing.T) {
			fail := true
			rt := outbound.MustNew(outbound.Options{
				Rate: ratelimit.PerKey(0.001, 1), MaxWait: time.Second, CountResends: counting,
				Retry: outbound.RetryOptions{Attempts: 1},
				Base: tripper(func(r *http.Request) (*http.Response, error) {
					if fail {
						return nil, refused
					}
					return answer(r, 200), nil
				}),
			})
			job := outbound.NewAttempts(1)
			for range 5 {
				if _, _, err := get(t, job.Context(t.Context()), rt); !errors.Is(err, refused) {
					t.Fatalf("error %v", err)
				}
			}
			fail = false
			if status, _, err := get(t, job.Context(t.Context()), rt); err != nil || status != 200 {
				t.Errorf("status %d, error %v: the only token is gone", status, err)
			}
			if o := operation(t, rt); o.Attempts != 1 || job.Used() != 1 {
				t.Errorf("%d attempts, %d charged to the job", o.Attempts, job.Used())
			}
		})
	}
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
		o   outbound.Options
		ctx context.Context
		why outbound.Why
	}{
		"rate zero": {outbound.Options{Rate: neverLimiter{}}, context.Background(), outbound.NeverFits},
		"job spent": {outbound.Options{}, spent.Context(context.Background()), outbound.AttemptsSpent},
		"breaker": {outbound.Options{Breaker: func(*http.Request) outbound.Breaker {
			return outbound.Breaker{Execute: func(func() (*http.Response, error)) (*http.Response, error) { return nil, open }}
		}}, context.Background(), outbound.BreakerOpen},
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
			var r *outbound.Refusal
			if !errors.As(err, &r) || r.Why != c.why || !body.closed {
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
		var r *outbound.Refusal
		if !errors.As(err, &r) || r.Why != outbound.AttemptsSpent {
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
		if o := operation(t, rt); o.InFlight != 0 || o.Ended[outbound.Transient] != 1 {
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

func TestASlotIsHeldUntilTheBodyIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := outbound.MustNew(outbound.Options{
			InFlight: shed.Fixed(1), MaxWait: 10 * time.Second,
			Base: tripper(func(r *http.Request) (*http.Response, error) { return answer(r, 200), nil }),
		})
		req, _ := http.NewRequest(http.MethodGet, "http://service.test/", nil)
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		var waited time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			start := time.Now()
			if _, _, err := get(t, t.Context(), rt); err != nil {
				t.Error(err)
			}
			waited = time.Since(start)
		})
		time.Sleep(time.Second)
		if o := operation(t, rt); o.InFlight != 1 {
			t.Errorf("%d in flight", o.InFlight)
		}
		if _, err := io.ReadAll(resp.Body); err != nil { // the end is enough; Close may come later
			t.Fatal(err)
		}
		wg.Wait()
		if waited != time.Second {
			t.Errorf("the second call waited %v", waited)
		}
		resp.Body.Close()
		if o, s := operation(t, rt), rt.Stats().Services[0]; o.InFlight != 0 || s.Slots.InFlight != 0 {
			t.Errorf("left in flight: %d, slots %d", o.InFlight, s.Slots.InFlight)
		}
	})
}

// A server that stalls fills the cap; calls that wait for a slot must not have paid
// already, or all of them leave at once when it comes back.
func TestAStallDoesNotTurnIntoABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, burst = 20, 5
		var mu sync.Mutex
		var sent []time.Time
		stalled := make(chan struct{})
		rt := outbound.MustNew(outbound.Options{
			Rate: ratelimit.PerKey(limit, burst), InFlight: shed.Fixed(10),
			Base: tripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				sent = append(sent, time.Now())
				mu.Unlock()
				<-stalled
				return answer(r, 200), nil
			}),
		})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, _, err := get(t, t.Context(), rt); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(20 * time.Second)
		close(stalled)
		wg.Wait()
		if excess := worst(sent, limit, burst); excess > 1e-6 || len(sent) != 100 {
			t.Errorf("%d sent, a window exceeds its bound by %v", len(sent), excess)
		}
	})
}

func TestInFlightAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		base := tripper(func(r *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			if r.URL.Path == "/broken" {
				return nil, io.ErrUnexpectedEOF
			}
			return answer(r, 200), nil
		})
		f, err := outbound.NewInFlight(base, inFlightConfig(3))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var refused atomic.Int32
		for i := range 40 {
			wg.Go(func() {
				path := "/"
				if i%4 == 0 {
					path = "/broken"
				}
				req, _ := http.NewRequest(http.MethodGet, "http://service.test"+path, nil)
				resp, err := f.RoundTrip(req)
				var r *outbound.Refusal
				switch {
				case errors.As(err, &r) && r.Why == outbound.NoSlot:
					refused.Add(1)
				case err == nil:
					resp.Body.Close()
				case !errors.Is(err, io.ErrUnexpectedEOF):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most.Load() != 3 || refused.Load() == 0 || f.Stats().InFlight != 0 {
			t.Errorf("%d at once, %d refused, %d left", most.Load(), refused.Load(), f.Stats().InFlight)
		}
		if _, err := outbound.NewInFlight(nil, inFlightConfig(0)); err == nil {
			t.Error("no slots at all were accepted")
		}
	})
}

// A gate's 503 is learned once for all callers of the host, and waited for longer
// than a 429.
func TestFiftyCallersLearnAGatesRefusalOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived atomic.Int32
		var shut atomic.Bool
		shut.Store(true)
		base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			arrived.Add(1)
			if shut.Load() {
				says(503, "Headgate-Reason", "queue-full", "Retry-After", "3")(w, r)
			}
		})
		rt := outbound.MustNew(outbound.Options{
			Base: base, Key: func(r *http.Request) ratelimit.Key {
				return ratelimit.Key{Space: r.URL.Host, ID: r.URL.Path}
			},
		})
		time.AfterFunc(2*time.Second, func() { shut.Store(false) })
		if status, _, err := get(t, shortly(t, time.Second), rt); err != nil || status != 503 {
			t.Fatal(status, err)
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://service.test/"+strconv.Itoa(i%5), nil)
				resp, err := rt.RoundTrip(req)
				if err != nil || resp.StatusCode != 200 {
					t.Error(resp, err)
					return
				}
				resp.Body.Close()
			})
		}
		synctest.Wait()
		if n := arrived.Load(); n != 1 {
			t.Errorf("%d calls arrived at a shut gate, want the one that found out", n)
		}
		wg.Wait()
		if n := arrived.Load(); n != 51 {
			t.Errorf("%d calls arrived in all", n)
		}
	})
}

func shortly(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A service that passes a refusal from behind on to the front has retried it
// already; the front slows down and leaves it at that.
func TestOneRefusalIsRetriedOnceInAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := &script{steps: []http.HandlerFunc{says(503, "Headgate-Reason", "capacity", "Retry-After", "1")}}
		toBack := outbound.MustNew(outbound.Options{Base: serve(t, back.ServeHTTP)})
		middle := &script{steps: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			req, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://back.test/", nil)
			resp, err := toBack.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if !outbound.Relay(w.Header(), resp) {
				t.Error("not a refusal")
			}
			w.WriteHeader(resp.StatusCode)
		}}}
		toMiddle := outbound.MustNew(outbound.Options{Base: serve(t, middle.ServeHTTP)})
		status, _, err := get(t, t.Context(), toMiddle)
		if err != nil || status != 503 || middle.attempts() != 1 || back.attempts() != 3 {
			t.Errorf("status %d, error %v, %d attempts in front, %d behind; want 1 and 3", status, err, middle.attempts(), back.attempts())
		}
		if o := operation(t, toMiddle); o.Cuts != 1 || o.PauseLeft == 0 {
			t.Errorf("the front does not slow down: %+v", o)
		}
		for _, resp := range []*http.Response{nil, answer(nil, 200), answer(nil, 404)} {
			if h := (http.Header{}); outbound.Relay(h, resp) || len(h) != 0 {
				t.Errorf("%v was relayed as %v", resp, h)
			}
		}
	})
}

func TestRetriesKeepToWhatIsSafe(t *testing.T) {
	const post, patch, put = http.MethodPost, http.MethodPatch, http.MethodPut
	for name, c := range map[string]struct {
		method string
		answer http.HandlerFunc
		key    bool // with an Idempotency-Key
		once   bool // the body cannot be had again
		want   int  // attempts
	}{
		"POST refused":           {post, says(503), false, false, 3},
		"POST throttled":         {post, says(429), false, false, 3},
		"POST failed":            {post, says(500), false, false, 1},
		"POST failed, with key":  {post, says(500), true, false, 3},
		"PATCH failed":           {patch, says(502), false, false, 1},
		"PUT failed":             {put, says(502), false, false, 3},
		"PUT with a live body":   {put, says(502), false, true, 1},
		"PUT, not found":         {put, says(404), false, false, 1},
		"told not to":            {put, says(503, "Stripe-Should-Retry", "false"), false, false, 1},
		"pushed back":            {put, says(503, "grpc-retry-pushback-ms", "-1"), false, false, 1},
		"retried behind already": {put, says(503, "Headgate-Retried", "1"), false, false, 1},
		"quota of a day":         {put, says(409, "x-ms-error-code", "QuotaExceeded"), false, false, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			s := &script{steps: []http.HandlerFunc{c.answer}}
			rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)})
			var body io.Reader = strings.NewReader("body")
			if c.once {
				body = io.NopCloser(body)
			}
			req, _ := http.NewRequest(c.method, "http://service.test/", body)
			if c.key {
				req.Header.Set("Idempotency-Key", "1")
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if s.attempts() != c.want {
				t.Errorf("%d attempts, want %d", s.attempts(), c.want)
			}
		})
	}
}

func TestABudgetAlsoBoundsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(500)}}
		rt := outbound.MustNew(outbound.Options{
			Base:   serve(t, s.ServeHTTP),
			Budget: outbound.BudgetOptions{Ratio: 0.2, Floor: outbound.NoBudget},
			Retry:  outbound.RetryOptions{Attempts: 10, MaxBackoff: 20 * time.Millisecond},
		})
		const calls = 500
		for range calls {
			if status, _, err := get(t, t.Context(), rt); err != nil || status != 500 {
				t.Fatal(status, err)
			}
		}
		if n := s.attempts(); n > calls*6/5 || n < calls*11/10 {
			t.Errorf("%d attempts for %d calls, want up to a fifth more", n, calls)
		}
	})
}
