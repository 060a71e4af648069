package admission_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func mustUpdate(t *testing.T, g *admission.Gate, opts admission.Options) {
	t.Helper()
	if err := g.Update(opts); err != nil {
		t.Fatal(err)
	}
}

func mustPass(t *testing.T, h http.Handler, want int) {
	t.Helper()
	if got := passed(h, want+10); got != want {
		t.Errorf("%d passed, want %d", got, want)
	}
}

func TestUpdateKeepsBalancesAndNewNumbersCountFromNow(t *testing.T) {
	for name, with := range map[string]func(rate.Limit, int) admission.Options{
		"Anonymous": func(r rate.Limit, b int) admission.Options {
			return admission.Options{Anonymous: ratelimit.PerKey(r, b)}
		},
		"Rate":    func(r rate.Limit, b int) admission.Options { return admission.Options{Rate: ratelimit.PerKey(r, b)} },
		"Address": func(r rate.Limit, b int) admission.Options { return admission.Options{Address: ratelimit.PerKey(r, b)} },
		"Quota":   func(r rate.Limit, b int) admission.Options { return admission.Options{Quota: ratelimit.PerKey(r, b)} },
		"a part of several": func(r rate.Limit, b int) admission.Options {
			return admission.Options{Rate: ratelimit.All(ratelimit.Unlimited, ratelimit.PerKey(r, b), ratelimit.Global(100, 1000))}
		},
		"a route of the table": func(r rate.Limit, b int) admission.Options {
			return admission.Options{Routes: map[string]admission.Rule{"/": admission.AtLevel(priority.Normal, admission.Rate(ratelimit.PerKey(r, b)))}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.MustNew(with(0, 10))
				h := g.Handler(okHandler())
				if got := passed(h, 6); got != 6 {
					t.Fatalf("%d passed", got)
				}
				mustUpdate(t, g, with(0, 10))
				mustUpdate(t, g, with(0, 100)) // twice without a request between
				mustPass(t, h, 4)
				time.Sleep(time.Hour) // fake: at a rate of zero it brings nothing
				mustUpdate(t, g, with(1, 100))
				mustPass(t, h, 0)
				time.Sleep(10 * time.Second)
				mustPass(t, h, 10)
				time.Sleep(time.Hour) // 100 by now
				mustUpdate(t, g, with(0, 3))
				mustPass(t, h, 3)
			})
		})
	}
}

func TestChangeOfPlanKeepsTheBalance(t *testing.T) {
	plans := map[string]ratelimit.Plan{"free": {Burst: 5}, "pro": {Burst: 50}}
	g := admission.MustNew(admission.Options{Identify: planned, Rate: ratelimit.Tiers(ratelimit.Plan{Burst: 1}, plans)})
	h := g.Handler(okHandler())
	if got := passed(h, 3, "X-Key", "a/free"); got != 3 {
		t.Fatalf("%d passed", got)
	}
	if got := passed(h, 100, "X-Key", "a/pro"); got != 2 {
		t.Errorf("%d passed after the change, want what was left", got)
	}
	if got := passed(h, 100, "X-Key", "b/pro"); got != 50 {
		t.Errorf("%d of a newcomer passed, want 50", got)
	}
}

func TestInFlightAboveALoweredLimitDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(slots int) admission.Options {
			return admission.Options{Pool: admission.Pool{Limit: shed.Fixed(slots), MaxWait: time.Minute, MaxWaiting: 10}}
		}
		g := admission.MustNew(with(4))
		block := newHeld()
		h := g.Handler(block)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { get(h) })
		}
		synctest.Wait()
		mustUpdate(t, g, with(2))
		wg.Go(func() { get(h) })
		for left := int64(4); left > 2; left-- {
			synctest.Wait()
			if n := block.inside.Load(); n != left {
				t.Fatalf("%d inside, want %d: nobody enters above the limit", n, left)
			}
			block.release <- struct{}{}
		}
		synctest.Wait()
		if n := block.inside.Load(); n != 2 {
			t.Errorf("%d inside at the lowered limit of 2", n)
		}
		block.release <- struct{}{} // now one leaves and the one that waited enters
		synctest.Wait()
		if n := block.inside.Load(); n != 2 {
			t.Errorf("%d inside, want the one that waited to have entered", n)
		}
		close(block.release)
		wg.Wait()
		atRest(t, g)
	})
}

func TestWaitersAboveALoweredBoundStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(bound int) admission.Options {
			return admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Minute, MaxWaiting: bound}}
		}
		g := admission.MustNew(with(5))
		block := newHeld()
		h := g.Handler(block)
		var wg sync.WaitGroup
		var ok atomic.Int64
		for range 6 {
			wg.Go(func() {
				if get(h).Code == http.StatusOK {
					ok.Add(1)
				}
			})
			synctest.Wait()
		}
		mustUpdate(t, g, with(1))
		if w := get(h); w.Code != http.StatusServiceUnavailable {
			t.Errorf("a newcomer above the bound: %d", w.Code)
		}
		if n := g.Stats().Pools[0].Waiting[priority.Normal.Index()]; n != 5 {
			t.Errorf("%d wait, want the 5 that were there", n)
		}
		close(block.release)
		wg.Wait()
		if ok.Load() != 6 {
			t.Errorf("%d of 6 served", ok.Load())
		}
		atRest(t, g)
	})
}

func TestUpdateThatCannotBeAdoptedChangesNothing(t *testing.T) {
	heard := &recorder{}
	good := func() admission.Options {
		return admission.Options{
			Name: "api", Rate: ratelimit.PerKey(0, 10), Pool: admission.Pool{Limit: shed.Fixed(3), MaxWaiting: 7}, Observer: heard,
			Pools:  map[string]admission.Pool{"db": {Limit: shed.Fixed(2)}, "mail": {Limit: shed.Fixed(4)}, "idle": {Limit: shed.Fixed(1)}},
			Routes: map[string]admission.Rule{"/costly": admission.AtLevel(priority.Normal, admission.Cost(2))},
		}
	}
	g := admission.MustNew(good())
	g.At(priority.Normal, admission.InPool("db"))
	busy, err := g.Admit(context.Background(), admission.Ticket{Pool: "mail", Caller: caller.Caller{Key: "m", Verified: true}})
	if err != nil {
		t.Fatal(err)
	}
	h := g.Handler(okHandler())
	passed(h, 3)
	for want, spoil := range map[string]func(*admission.Options){
		"Options.Name":          func(o *admission.Options) { o.Name = "other" },
		"Options.Rate":          func(o *admission.Options) { o.Rate = ratelimit.PerKey(-1, 1) },
		"MaxWaiting":            func(o *admission.Options) { o.Pool.MaxWaiting = -1 },
		`Options.Pools["mail"]`: func(o *admission.Options) { o.Pools["mail"] = admission.Pool{CriticalReserve: -1} },
		`"db" is gone`:          func(o *admission.Options) { delete(o.Pools, "db") },
		`"mail" is gone`:        func(o *admission.Options) { delete(o.Pools, "mail") },
		`Options.Routes["/x{"]`: func(o *admission.Options) { o.Routes["/x{"] = admission.AtLevel(priority.Normal) },
		`Options.Routes["/new"]`: func(o *admission.Options) {
			o.Routes["/new"] = admission.AtLevel(priority.Normal, admission.InPool("nowhere"))
		},
		"Trusted":                       func(o *admission.Options) { o.ClientIP.Trusted = []string{"banana"} },
		"Options.Deadline":              func(o *admission.Options) { o.Deadline = admission.TimeoutHeader("X-Timeout", -1) },
		"Options.HTTP.RateLimitHeaders": func(o *admission.Options) { o.HTTP.RateLimitHeaders = 1 << 7 },
		"Options.Shadow":                func(o *admission.Options) { o.Shadow = 1 << 7 },
	} {
		opts := good() // everything else would be a change
		opts.Rate, opts.Pool.Limit, opts.Pool.MaxWaiting, opts.CallerCap = ratelimit.PerKey(1000, 1000), shed.Fixed(99), 99, 1
		opts.Pools["idle"] = admission.Pool{Limit: shed.Fixed(99)}
		opts.Routes["/costly"] = admission.AtLevel(priority.Critical)
		spoil(&opts)
		if err := g.Update(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error = %v", want, err)
		}
		s := g.Stats()
		if s.Name != "api" || s.Pools[0].Limit != 3 || s.Pools[0].Bound != 7 || len(s.Pools) != 4 || s.Pools[2].Limit != 1 {
			t.Errorf("%s: the update changed the gate: %+v", want, s.Pools)
		}
	}
	if w := do(h, request("GET", "/costly")); w.Code != 200 { // two of the seven left
		t.Errorf("status %d", w.Code)
	}
	mustPass(t, h, 5)
	busy.Release(shed.Served)
	opts := good()
	delete(opts.Pools, "mail") // nobody is in it now
	delete(opts.Pools, "idle")
	opts.Pools["new"] = admission.Pool{Limit: shed.Fixed(6)}
	mustUpdate(t, g, opts)
	if s := g.Stats(); len(s.Pools) != 3 || s.Pools[2].Name != "new" || s.Pools[2].Limit != 6 {
		t.Errorf("pools = %+v", s.Pools)
	}
	if heard.attached != 1 {
		t.Errorf("the observer was attached %d times, want once", heard.attached)
	}
}

func TestUpdateMindsTheObserver(t *testing.T) {
	first, second := &recorder{}, &recorder{}
	g := admission.MustNew(admission.Options{Observer: first})
	h := g.Handler(okHandler())
	get(h)
	mustUpdate(t, g, admission.Options{}) // nil keeps the first
	get(h)
	mustUpdate(t, g, admission.Options{Observer: second})
	get(h)
	mustUpdate(t, g, admission.Options{Observer: admission.Observers(second)})
	get(h)
	if a, b := len(first.all()), len(second.all()); a != 2 || b != 2 {
		t.Errorf("observed %d and %d, want 2 and 2", a, b)
	}
	if first.attached != 1 || second.attached != 2 {
		t.Errorf("attached %d and %d times, want 1 and 2", first.attached, second.attached)
	}
	mustUpdate(t, g, admission.Options{Observer: loose{}})
	mustUpdate(t, g, admission.Options{Observer: loose{}}) // values that cannot be compared
	get(h)
}

// loose is an observer whose values cannot be compared.
type loose struct{ _ []int }

func (loose) Observe(admission.Event)               {}
func (loose) Attach(string, func() admission.Stats) {}

func TestUpdateOfANilGateIsAnError(t *testing.T) {
	var g *admission.Gate
	if g.Update(admission.Options{}) == nil {
		t.Error("no error")
	}
}

func TestPoolsThatComeWhileDrainingAreShut(t *testing.T) {
	g := admission.MustNew(admission.Options{})
	if err := g.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	mustUpdate(t, g, admission.Options{Pools: map[string]admission.Pool{"new": {}}})
	if _, err := g.Admit(context.Background(), admission.Ticket{Pool: "new"}); !errors.Is(err, shed.Draining) {
		t.Errorf("error = %v", err)
	}
}
