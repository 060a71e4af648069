package admission_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// slow is a limiter whose store takes its time to answer.
type slow struct {
	ratelimit.Limiter
	takes time.Duration
}

func (s slow) Take(ctx context.Context, now time.Time, key ratelimit.Key, cost int, maxWait time.Duration) ratelimit.Decision {
	time.Sleep(s.takes)
	return s.Limiter.Take(ctx, now, key, cost, maxWait)
}

type slowGate struct {
	*admission.Gate
	at func(http.Handler) http.Handler
}

// slowGates are gates, and routes of theirs, on which one step before capacity takes d.
func slowGates(d time.Duration, opts admission.Options) map[string]slowGate {
	type change func(*admission.Options) []admission.RouteOption
	limiter := func() ratelimit.Limiter { return slow{ratelimit.PerKey(1000, 1000), d} }
	gates := map[string]slowGate{}
	for name, make := range map[string]change{
		"look-up": func(o *admission.Options) []admission.RouteOption {
			o.Identify = caller.APIKey("X-Key", func(context.Context, string) (caller.Caller, bool) {
				time.Sleep(d)
				return caller.Caller{}, true
			})
			return nil
		},
		"rate":      func(o *admission.Options) []admission.RouteOption { o.Rate = limiter(); return nil },
		"address":   func(o *admission.Options) []admission.RouteOption { o.Address = limiter(); return nil },
		"quota":     func(o *admission.Options) []admission.RouteOption { o.Quota = limiter(); return nil },
		"anonymous": func(o *admission.Options) []admission.RouteOption { o.Anonymous = limiter(); return nil },
		"route's rate": func(o *admission.Options) []admission.RouteOption {
			return []admission.RouteOption{admission.Rate(limiter())}
		},
		"one of several": func(o *admission.Options) []admission.RouteOption {
			o.Rate = ratelimit.All(ratelimit.Scoped("x", limiter()))
			return nil
		},
		"cost": func(*admission.Options) []admission.RouteOption {
			return []admission.RouteOption{admission.CostOf(func(*http.Request) int { time.Sleep(d); return 1 })}
		},
	} {
		o := opts
		options := make(&o)
		g := admission.MustNew(o)
		gates[name] = slowGate{g, g.At(priority.Normal, options...)}
	}
	return gates
}

// Every decision rests on the time at which it is made, whatever took its time before.
//
// Case GA-02: tried on the product
func TestSlowLookUpsDoNotMakeDecisionsStale(t *testing.T) {
	t.Run("a deadline that passed meanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for name, g := range slowGates(200*time.Millisecond, admission.Options{Deadline: admission.Within(100 * time.Millisecond)}) {
				started := false
				w := do(g.at(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { started = true })), request("GET", "/", "X-Key", "a"))
				if started {
					t.Errorf("%s: the handler was started after its deadline", name)
				}
				mustRefuse(t, w, http.StatusServiceUnavailable, shed.DeadlineUnmeetable)
			}
		})
	})
	t.Run("the stay begins when the wait does", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			opts := admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: 200 * time.Millisecond}}
			for name, g := range slowGates(250*time.Millisecond, opts) {
				begun := time.Now()
				h := g.at(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-First") != "" {
						time.Sleep(100 * time.Millisecond)
					}
				}))
				first := make(chan struct{})
				go func() { do(h, request("GET", "/", "X-First", "1", "X-Key", "a")); close(first) }()
				synctest.Wait()
				time.Sleep(time.Nanosecond) // the first is first
				if w := do(h, request("GET", "/", "X-Key", "a")); w.Code != http.StatusOK || time.Since(begun).Round(time.Millisecond) != 350*time.Millisecond {
					t.Errorf("%s: %d after %v, want 200 after 350 ms", name, w.Code, time.Since(begun))
				}
				<-first
			}
		})
	})
}

// What is measured is the work behind the gate, not what the gate did before.
//
// Case GA-02: tried on the product
func TestSlowLookUpsAreNotMeasuredAsService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &recorder{}
		for name, g := range slowGates(200*time.Millisecond, admission.Options{Observer: heard}) {
			do(g.at(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) })), request("GET", "/", "X-Key", "a"))
			events := heard.all()
			if got := events[len(events)-1].Served; got != 5*time.Millisecond {
				t.Errorf("%s: served in %v, want 5 ms", name, got)
			}
			if got := g.Stats().Pools[0].Service.Round(time.Millisecond); got != 5*time.Millisecond {
				t.Errorf("%s: a service time of %v was learned, want 5 ms", name, got)
			}
		}
	})
}

func TestAdmitDecidesByTheTimeAfterASlowLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: slow{ratelimit.PerKey(1000, 1000), 200 * time.Millisecond}})
		if _, err := g.Admit(t.Context(), admission.Ticket{Deadline: time.Now().Add(100 * time.Millisecond)}); err == nil {
			t.Error("admitted after its deadline")
		}
	})
}
