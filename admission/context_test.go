package admission_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// inside runs f within a request admitted with the given options.
func inside(t *testing.T, opts admission.Options, outer context.Context, f func(ctx context.Context)) shed.Outcome {
	t.Helper()
	heard := &recorder{}
	opts.Observer = heard
	g := admission.MustNew(opts)
	h := g.At(priority.High)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { f(r.Context()) }))
	do(h, request("GET", "/").WithContext(outer))
	atRest(t, g)
	events := heard.all()
	if len(events) != 1 {
		t.Fatalf("observed %d visits", len(events))
	}
	return events[0].Outcome
}

func TestHandlerSeesWhatIsLeftOfTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := inside(t, admission.Options{Deadline: admission.Within(time.Second)}, t.Context(), func(ctx context.Context) {
			at, ok := ctx.Deadline()
			if !ok || time.Until(at) != time.Second {
				t.Errorf("deadline in %v, %v", time.Until(at), ok)
			}
			if ctx.Err() != nil {
				t.Errorf("error before the deadline: %v", ctx.Err())
			}
			start := time.Now()
			<-ctx.Done()
			if d := time.Since(start); d != time.Second || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("done after %v: %v", d, ctx.Err())
			}
		})
		if got != shed.TimedOut {
			t.Errorf("outcome = %v, want timed-out", got)
		}
	})
}

func TestDeadlineIsKnownWithoutATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inside(t, admission.Options{Deadline: admission.Within(time.Second)}, t.Context(), func(ctx context.Context) {
			time.Sleep(2 * time.Second)
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("error after the deadline = %v", ctx.Err())
			}
			select {
			case <-ctx.Done():
			default:
				t.Error("Done is open after Err said otherwise")
			}
		})
	})
}

func TestChildrenOfTheContextNeedNoGoroutine(t *testing.T) {
	inside(t, admission.Options{Deadline: admission.Within(time.Minute)}, t.Context(), func(ctx context.Context) {
		before := runtime.NumGoroutine()
		for range 100 {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			if child.Err() != nil {
				t.Error(child.Err())
			}
		}
		if n := runtime.NumGoroutine(); n > before {
			t.Errorf("100 children started %d goroutines", n-before)
		}
	})
}

func TestEarlierDeadlineOfTheContextStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		inside(t, admission.Options{Deadline: admission.Within(time.Minute)}, outer, func(ctx context.Context) {
			if at, _ := ctx.Deadline(); time.Until(at) != time.Second {
				t.Errorf("deadline in %v", time.Until(at))
			}
			<-ctx.Done()
		})
	})
}

func TestRouteTimeoutCapsTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Deadline: admission.TimeoutHeader("X-Timeout", 5*time.Second)})
		var left time.Duration
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			at, _ := r.Context().Deadline()
			left = time.Until(at)
		})
		for _, c := range []struct {
			header string
			opts   []admission.RouteOption
			want   time.Duration
		}{
			{"", nil, 5 * time.Second},
			{"800", nil, 800 * time.Millisecond},
			{"1.5s", nil, 1500 * time.Millisecond},
			{"60000", nil, 5 * time.Second},
			{"banana", nil, 5 * time.Second},
			{"800", []admission.RouteOption{admission.Timeout(300 * time.Millisecond)}, 300 * time.Millisecond},
			{"", []admission.RouteOption{admission.Timeout(time.Minute)}, 5 * time.Second},
		} {
			do(g.At(priority.Normal, c.opts...)(h), request("GET", "/", "X-Timeout", c.header))
			if left != c.want {
				t.Errorf("X-Timeout %q, %d route options: %v left, want %v", c.header, len(c.opts), left, c.want)
			}
		}
	})
}

func TestContextCarriesLevelAndValues(t *testing.T) {
	type key struct{}
	outer := context.WithValue(t.Context(), key{}, "v")
	inside(t, admission.Options{Deadline: admission.Within(time.Minute)}, outer, func(ctx context.Context) {
		for range 2 {
			if l, ok := priority.FromContext(ctx); !ok || l != priority.High {
				t.Errorf("level = %v, %v", l, ok)
			}
			if ctx.Value(key{}) != "v" {
				t.Error("a value of the request's context is lost")
			}
			<-after(ctx) // makes the timer; the values stay
		}
	})
}

func after(ctx context.Context) <-chan struct{} {
	ctx.Done()
	c := make(chan struct{})
	close(c)
	return c
}

func TestOutcomesTellWhatTheHandlerDid(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    shed.Outcome
	}{
		"nothing written": {func(http.ResponseWriter, *http.Request) {}, shed.Served},
		"200":             {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")) }, shed.Served},
		"302":             {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) }, shed.Served},
		"404":             {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, shed.Ignored},
		"500":             {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, shed.Failed},
		"504":             {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(504) }, shed.TimedOut},
		"103 then 200": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(200)
		}, shed.Served},
		"panic": {func(http.ResponseWriter, *http.Request) { panic("boom") }, shed.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			heard := &recorder{}
			g := admission.MustNew(admission.Options{Observer: heard})
			func() {
				defer func() { _ = recover() }()
				get(g.Handler(c.handler))
			}()
			if got := heard.all()[0].Outcome; got != c.want {
				t.Errorf("outcome = %v, want %v", got, c.want)
			}
		})
	}
}

func TestClientThatLeavesIsIgnored(t *testing.T) {
	outer, cancel := context.WithCancel(t.Context())
	if got := inside(t, admission.Options{}, outer, func(context.Context) { cancel() }); got != shed.Ignored {
		t.Errorf("outcome = %v, want ignored", got)
	}
}

// Whoever stands outside the gate reads from its request what the handler has left
// there: net/http the files of the form, a log the pattern.
func TestOuterRequestKnowsItsFormAndPattern(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /up/{id}", func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1 << 10); err != nil {
			t.Error(err)
		}
	})
	r := httptest.NewRequest("POST", "/up/7", strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	do(admission.MustNew(admission.Options{}).Handler(mux), r)
	if r.MultipartForm == nil || r.Pattern != "POST /up/{id}" {
		t.Errorf("form %v, pattern %q", r.MultipartForm, r.Pattern)
	}
}
