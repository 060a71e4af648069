package admission_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// A client waits for the beginning of a stream, not for its end: the deadline in
// force bounds the wait for a slot only.
func TestADeadlineDoesNotCutAStream(t *testing.T) {
	for name, c := range map[string]struct {
		opts []admission.RouteOption
		cut  bool
	}{
		"a stream":                      {[]admission.RouteOption{admission.Stream(1)}, false},
		"a stream with its own timeout": {[]admission.RouteOption{admission.Stream(1), admission.Timeout(10 * time.Second)}, true},
		"any other route":               {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.MustNew(admission.Options{Deadline: admission.TimeoutHeader("X-Timeout", 10*time.Second)})
				cut := false
				stream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.(http.Flusher).Flush()
					select {
					case <-r.Context().Done():
						cut = true
					case <-time.After(time.Hour):
					}
				})
				get(g.At(priority.Normal, c.opts...)(stream))
				if cut != c.cut {
					t.Errorf("cut: %v, want %v", cut, c.cut)
				}
				atRest(t, g)
			})
		})
	}
}

// Until it begins, a stream holds a slot like any other work.
func TestADeadlineBoundsTheOpeningOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &recorder{}
		g := admission.MustNew(admission.Options{Deadline: admission.Within(time.Second), Observer: heard})
		start := time.Now()
		get(g.At(priority.Normal, admission.Stream(1))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if at, ok := r.Context().Deadline(); ok {
				t.Errorf("the stream is told a deadline, %v", at)
			}
			<-r.Context().Done()
			if context.Cause(r.Context()) != context.DeadlineExceeded {
				t.Errorf("cause %v", context.Cause(r.Context()))
			}
		})))
		if took := time.Since(start); took != time.Second {
			t.Errorf("cut after %v, want 1 s", took)
		}
		if events := heard.all(); len(events) != 1 || events[0].Outcome != shed.TimedOut {
			t.Errorf("events %+v", events)
		}
		atRest(t, g)
	})
}

func TestADeadlineBoundsAStreamsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, release := full(t, admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Hour}, Deadline: admission.Within(time.Second)})
		defer release()
		w := get(g.At(priority.Normal, admission.Stream(1))(okHandler()))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d after the deadline, want 503", w.Code)
		}
	})
}

// What a request says about itself moves nothing: only a declared stream leaves its
// slot, whatever the headers promise and however often the handler flushes.
func TestOnlyADeclaredStreamLeavesItsSlot(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []admission.RouteOption
		holds int
	}{
		"a stream":        {[]admission.RouteOption{admission.Stream(1)}, 0},
		"any other route": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := capped(1)
			r := request("GET", "/", "Accept", "text/event-stream", "Upgrade", "websocket", "Connection", "Upgrade")
			do(g.At(priority.Normal, c.opts...)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				_ = http.NewResponseController(w).Flush()
				if n := g.Stats().InFlight(); n != c.holds {
					t.Errorf("%d slots held after a flush, want %d", n, c.holds)
				}
			})), r)
			atRest(t, g)
		})
	}
}
