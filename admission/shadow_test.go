package admission_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func shadowed(events []admission.Event) map[shed.Reason]int {
	n := map[shed.Reason]int{}
	for _, e := range events {
		n[e.Shadow]++
	}
	return n
}

func TestShadowRateDecidesAndCountsAndLetsThrough(t *testing.T) {
	for name, opts := range map[string]admission.Options{
		"Anonymous": {Rate: ratelimit.PerKey(1e-9, 3)},
		"Address":   {Address: ratelimit.PerKey(1e-9, 3)},
		"Quota":     {Quota: ratelimit.PerKey(1e-9, 3)},
		"a route's": {Routes: map[string]admission.Rule{"/": admission.AtLevel(priority.Normal, admission.Rate(ratelimit.PerKey(1e-9, 3)))}},
	} {
		heard := &recorder{}
		opts.Shadow, opts.HTTP.RateLimitHeaders, opts.Observer = admission.ShadowRate, bothSets, heard
		g := admission.MustNew(opts)
		h := g.Handler(okHandler())
		for range 10 {
			w := get(h)
			if w.Code != http.StatusOK || len(rateFields(w.Header())) != 0 || w.Header().Get("Retry-After") != "" {
				t.Errorf("%s: %d, %v; nothing enforced, nothing told", name, w.Code, w.Header())
			}
		}
		if got := shadowed(heard.all()); got[shed.Admitted] != 3 || got[shed.RateLimited] != 7 {
			t.Errorf("%s: events %v", name, got)
		}
		s := g.Stats()
		if n := s.Shadowed[priority.Normal.Index()][shed.RateLimited]; n != 7 || s.Count(shed.Admitted) != 10 {
			t.Errorf("%s: %d counted, %d admitted; want 7 of 10", name, n, s.Count(shed.Admitted))
		}
	}
}

// What one limit in shadow would have refused takes nothing from the others, as a
// refusal would not.
func TestShadowRateTakesNothingForWhatItWouldRefuse(t *testing.T) {
	opts := admission.Options{
		Rate: ratelimit.PerKey(0, 3), Quota: ratelimit.PerKey(0, 10, ratelimit.Name("quota")), Shadow: admission.ShadowRate,
	}
	g := admission.MustNew(opts)
	h := g.Handler(okHandler())
	if got := passed(h, 9); got != 9 {
		t.Fatalf("%d passed", got)
	}
	opts.Shadow, opts.Rate = 0, ratelimit.Unlimited
	mustUpdate(t, g, opts)
	mustPass(t, h, 7) // of ten, three were taken
}

func TestShadowOfOneLimitLeavesTheOthersInForce(t *testing.T) {
	heard := &recorder{}
	g := admission.MustNew(admission.Options{
		Rate: ratelimit.All(ratelimit.PerKey(0, 5), ratelimit.Shadow(ratelimit.Global(0, 2))),
		HTTP: admission.HTTP{RateLimitHeaders: bothSets}, Observer: heard,
	})
	h := g.Handler(okHandler())
	for i := range 5 {
		w := get(h)
		if w.Code != http.StatusOK {
			t.Errorf("request %d: %d", i+1, w.Code)
		}
		if got := w.Header().Get("RateLimit-Policy"); got != `"default";q=5` {
			t.Errorf("request %d: RateLimit-Policy %s; only what is enforced is told", i+1, got)
		}
		if left := seconds(t, w.Header(), "X-RateLimit-Remaining"); left != 4-i {
			t.Errorf("request %d: %d left", i+1, left)
		}
	}
	if w := get(h); w.Code != http.StatusTooManyRequests {
		t.Errorf("the limit in force let a sixth through: %d", w.Code)
	}
	if got := shadowed(heard.all()); got[shed.RateLimited] != 3 {
		t.Errorf("events %v, want 3 that the limit in shadow would have refused", got)
	}
}

func TestShadowOfTheOnlyLimitIsNotAdvertised(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.Shadow(ratelimit.PerKey(0, 1)), HTTP: admission.HTTP{RateLimitHeaders: bothSets}})
	h := g.Handler(okHandler())
	for range 3 {
		if w := get(h); w.Code != 200 || len(rateFields(w.Header())) != 0 {
			t.Errorf("%d, told %v", w.Code, rateFields(w.Header()))
		}
	}
	if n := g.Stats().Shadowed[priority.Normal.Index()][shed.RateLimited]; n != 2 {
		t.Errorf("%d counted, want 2", n)
	}
}

func TestShadowCapacityLetsThroughAboveTheLimit(t *testing.T) {
	for want, tc := range map[shed.Reason]struct {
		opts  admission.Options
		route []admission.RouteOption
	}{
		shed.Capacity:  {admission.Options{Pool: admission.Pool{Limit: shed.Fixed(2), MaxWait: admission.NoWait}}, nil},
		shed.RouteCap:  {admission.Options{Pool: admission.Pool{Limit: shed.Fixed(99)}}, []admission.RouteOption{admission.Cap(2)}},
		shed.CallerCap: {admission.Options{Pool: admission.Pool{Limit: shed.Fixed(99)}, CallerCap: 2}, nil},
	} {
		t.Run(want.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				heard := &recorder{}
				tc.opts.Shadow, tc.opts.Observer = admission.ShadowCapacity, heard
				g := admission.MustNew(tc.opts)
				block := newHeld()
				h := g.At(priority.Normal, tc.route...)(block)
				var wg sync.WaitGroup
				for range 5 {
					wg.Go(func() { get(h) })
				}
				synctest.Wait()
				if n := block.inside.Load(); n != 5 {
					t.Errorf("%d inside, want all 5 at once", n)
				}
				close(block.release)
				wg.Wait()
				if got := shadowed(heard.all()); got[want] != 3 || got[shed.Admitted] != 2 {
					t.Errorf("events %v, want 3 × %v", got, want)
				}
				atRest(t, g)
			})
		})
	}
}

func TestShadowLayersAreSeparate(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Rate: ratelimit.PerKey(0, 1), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}, Shadow: admission.ShadowCapacity,
	})
	h := g.Handler(okHandler())
	if got := passed(h, 3); got != 1 {
		t.Errorf("%d passed: capacity in shadow must not let through what the rate refuses", got)
	}
	g = admission.MustNew(admission.Options{
		Rate: ratelimit.PerKey(0, 1), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}, Shadow: admission.ShadowRate,
	})
	p, err := g.Admit(context.Background(), admission.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, get(g.Handler(okHandler())), http.StatusServiceUnavailable, shed.Capacity)
	p.Release(shed.Served)
}

func TestShadowDoesNotOutliveADrain(t *testing.T) {
	var g *admission.Gate
	g = admission.MustNew(admission.Options{
		Shadow: admission.ShadowCapacity, CallerCap: 1,
		Identify: func(*http.Request) (caller.Caller, error) { return caller.Caller{}, g.Close() }, // the visit has begun
	})
	mustRefuse(t, get(g.Handler(okHandler())), http.StatusServiceUnavailable, shed.Draining)
	if n := g.Stats().Count(shed.Admitted); n != 0 {
		t.Errorf("%d admitted by a gate that was shut", n)
	}
	atRest(t, g)
}
