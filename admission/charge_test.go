package admission_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// charging serves requests that cost n after all.
func charging(t *testing.T, n int) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !admission.Charge(r.Context(), n) {
			t.Error("not charged")
		}
		if admission.Charge(r.Context(), n) {
			t.Error("charged twice")
		}
	})
}

func TestChargeReplacesTheCostAtEveryLimit(t *testing.T) {
	for name, opts := range map[string]admission.Options{
		"Rate":             {Rate: ratelimit.PerKey(0, 100)},
		"Quota":            {Quota: ratelimit.PerKey(0, 100)},
		"parts of several": {Rate: ratelimit.All(ratelimit.PerKey(0, 1000), ratelimit.Scoped("x", ratelimit.PerKey(0, 100)))},
		"the route's own":  {Routes: map[string]admission.Rule{"/": admission.AtLevel(priority.Normal, admission.Cost(10), admission.Rate(ratelimit.PerKey(0, 100)))}},
	} {
		for _, tc := range []struct{ after, want int }{
			{25, 4},   // more: 25 each
			{10, 10},  // the same
			{4, 23},   // less: 4 each, as long as 10 are there
			{0, 100},  // nothing: as many as are sent
			{-5, 100}, // below zero is nothing
			{math.MinInt, 100},
			{math.MaxInt, 1}, // into debt, for good
		} {
			opts.Routes = map[string]admission.Rule{"/": opts.Routes["/"]}
			if name != "the route's own" {
				opts.Routes["/"] = admission.AtLevel(priority.Normal, admission.Cost(10))
			}
			h := admission.MustNew(opts).Handler(charging(t, tc.after))
			if got := passed(h, 100); got != tc.want {
				t.Errorf("%s, %d instead of 10: %d passed, want %d", name, tc.after, got, tc.want)
			}
		}
	}
}

func TestDebtIsWaitedOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(1, 10)}).Handler(charging(t, 40))
		if w := get(h); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
		w := get(h)
		mustRefuse(t, w, 429, shed.RateLimited)
		after := seconds(t, w.Header(), "Retry-After")
		if after != 31 {
			t.Errorf("Retry-After %d, want the debt of 30 and the one token", after)
		}
		time.Sleep(time.Duration(after) * time.Second) // fake
		if w := get(h); w.Code != http.StatusOK {
			t.Errorf("advice followed exactly: %d", w.Code)
		}
	})
}

func TestChargeMintsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(1, 5), Pool: admission.Pool{Limit: shed.Fixed(100)}})
		slow := g.At(priority.Normal, admission.Cost(5))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute) // the bucket has long been full again
			admission.Charge(r.Context(), 0)
		}))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { get(slow) })
			synctest.Wait()
			time.Sleep(5 * time.Second)
		}
		wg.Wait()
		mustPass(t, g.Handler(okHandler()), 5) // the burst, not the burst and the refunds
	})
}

func TestChargeOutsideOfARequestIsFalse(t *testing.T) {
	if admission.Charge(context.Background(), 5) {
		t.Error("charged nobody")
	}
	if _, ok := admission.FromContext(context.Background()); ok {
		t.Error("knows a visitor outside of a request")
	}
	var kept context.Context
	h := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 5)}).Handler(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { kept = r.Context() }))
	get(h)
	if admission.Charge(kept, 0) {
		t.Error("charged after the end")
	}
	mustPass(t, h, 4)
}

func TestPermitIsChargedOnce(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 10), Pool: admission.Pool{Limit: shed.Fixed(10)}})
	ticket := admission.Ticket{Caller: caller.Caller{Key: "a", Verified: true}, Cost: 6}
	p, err := g.Admit(context.Background(), ticket)
	if err != nil {
		t.Fatal(err)
	}
	twin := p
	if !p.Charge(1) || twin.Charge(0) || p.Charge(0) {
		t.Error("the first charge counts, and no other")
	}
	p.Release(shed.Served)
	ticket.Cost = 9
	p, err = g.Admit(context.Background(), ticket) // nine are left
	if err != nil {
		t.Fatal(err)
	}
	p.Release(shed.Served)
	if p.Charge(0) {
		t.Error("charged after the release")
	}
	if (admission.Permit{}).Charge(1) {
		t.Error("a permit that holds nothing was charged")
	}
	ticket.Cost = 1
	if _, err := g.Admit(context.Background(), ticket); !errors.Is(err, shed.NotAdmissible) && !errors.Is(err, shed.RateLimited) {
		t.Errorf("the bucket should be empty: %v", err)
	}
}

func TestStreamIsChargedAfterItLeftItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 20), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}})
		end := make(chan struct{})
		h := g.At(priority.Normal, admission.Stream(5))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-end
			if !admission.Charge(r.Context(), 8) || admission.Charge(r.Context(), 8) {
				t.Error("a stream is charged once, at its end")
			}
		}))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { get(h) })
			synctest.Wait()
		}
		close(end)
		wg.Wait()
		mustPass(t, g.Handler(okHandler()), 20-16)
		atRest(t, g)
	})
}

// Many goroutines of one request may charge; one of them does.
func TestOneOfManyChargesCounts(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 100)})
	h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var wg sync.WaitGroup
		var charged atomic.Int64
		for range 8 {
			wg.Go(func() {
				if admission.Charge(r.Context(), 10) {
					charged.Add(1)
				}
			})
		}
		wg.Wait()
		if charged.Load() != 1 {
			t.Errorf("charged %d times", charged.Load())
		}
	}))
	mustPass(t, h, 10)
}

func TestFromKnowsTheCallersAlias(t *testing.T) {
	acme := caller.Caller{Key: "1", Space: "test", Verified: true, Level: caller.AtMost(priority.Batch), Alias: "acme"}
	g := admission.MustNew(admission.Options{Identify: func(*http.Request) (caller.Caller, error) { return acme, nil }})
	get(g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if v, _ := admission.FromContext(r.Context()); v.Caller != acme || g.Alias(v.Caller) != "acme" {
			t.Errorf("got %+v, shown as %q", v.Caller, g.Alias(v.Caller))
		}
	})))
}

func TestFromKnowsTheVisitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Identify: planned, Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Second}, Deadline: admission.TimeoutHeader("X-Timeout", time.Minute),
			Rate: ratelimit.Tiers(ratelimit.Plan{Burst: 9}, map[string]ratelimit.Plan{"pro": {Level: "high"}}),
		})
		first, err := g.Admit(context.Background(), admission.Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		arrived := time.Now()
		var seen admission.Visitor
		h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen, _ = admission.FromContext(r.Context()) }))
		var wg sync.WaitGroup
		wg.Go(func() { do(h, request("GET", "/", "X-Key", "ann/pro", "X-Timeout", "5s")) })
		time.Sleep(300 * time.Millisecond) // fake
		first.Release(shed.Served)
		wg.Wait()
		want := admission.Visitor{
			Caller: caller.Caller{Key: "ann", Space: "test", Plan: "pro", Verified: true},
			Level:  priority.High, Deadline: arrived.Add(5 * time.Second), Waited: 300 * time.Millisecond,
		}
		if seen != want {
			t.Errorf("got %+v, want %+v", seen, want)
		}
		do(h, arriving("203.0.113.9:1", "X-Timeout", "5s"))
		if want := (caller.Caller{Key: "203.0.113.9", Space: "addr"}); seen.Caller != want {
			t.Errorf("a stranger: %+v, want %+v", seen.Caller, want)
		}
	})
}
