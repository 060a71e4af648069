package admission_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
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

// planned identifies callers by X-Key, under the plan of the name that follows the
// slash: "ann/pro".
func planned(r *http.Request) (caller.Caller, error) {
	key, plan, _ := strings.Cut(r.Header.Get("X-Key"), "/")
	return caller.Caller{Key: key, Space: "test", Plan: plan, Verified: key != ""}, nil
}

// passed counts how many of n requests at once in a row get through.
func passed(h http.Handler, n int, headers ...string) (ok int) {
	for range n {
		if do(h, request("GET", "/", headers...)).Code == http.StatusOK {
			ok++
		}
	}
	return ok
}

// fixedPlans is a table whose buckets hold 60 tokens and never refill.
func fixedPlans(plans map[string]ratelimit.Plan) *ratelimit.Buckets {
	return ratelimit.Tiers(ratelimit.Plan{Burst: 60, Allow: ratelimit.AllowMetered}, plans)
}

func TestPlanMultipliesTheCostOfTheRoute(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Identify: planned, Pool: admission.Pool{Limit: shed.Fixed(10)},
		Rate: fixedPlans(map[string]ratelimit.Plan{
			"double": {Cost: 2}, "absurd": {Cost: math.MaxInt}, "huge": {Rate: 0, Burst: math.MaxInt, Cost: math.MaxInt},
		}),
	})
	h := g.At(priority.Normal, admission.Cost(5))(okHandler())
	for key, want := range map[string]int{
		"a/": 12, "b/unknown": 12, "c/double": 6,
		"d/absurd": 0, // more than the burst, not less than nothing
		"e/huge":   1, // MaxInt tokens, taken by one request
	} {
		if got := passed(h, 20, "X-Key", key); got != want {
			t.Errorf("%s: %d passed, want %d", key, got, want)
		}
	}
	w := do(h, request("GET", "/", "X-Key", "d/absurd"))
	if w.Code != 429 || w.Header().Get("Headgate-Reason") != "not-admissible" || w.Header().Get("Retry-After") != "" {
		t.Errorf("a cost above the burst: %d %v", w.Code, w.Header())
	}
}

func TestChargeAfterwardsCountsInTheUnitOfTheRoute(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Identify: planned, Pool: admission.Pool{Limit: shed.Fixed(10)}, Rate: fixedPlans(map[string]ratelimit.Plan{"double": {Cost: 2}}),
	})
	h := g.At(priority.Normal, admission.Cost(5))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if !admission.Charge(r.Context(), 1) {
			t.Error("not charged")
		}
	}))
	if got := passed(h, 100, "X-Key", "a/double"); got != 26 { // 2 each, and 10 at the door of the last
		t.Errorf("%d passed, want 26", got)
	}
}

// levelSeen returns the level at which a request is served.
func levelSeen(g *admission.Gate, route priority.Level, headers ...string) (seen priority.Level) {
	h := g.At(route)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen, _ = priority.FromContext(r.Context())
	}))
	do(h, request("GET", "/", headers...))
	return seen
}

func TestPlanRaisesVerifiedCallersAndNeverLowers(t *testing.T) {
	plans := fixedPlans(map[string]ratelimit.Plan{"pro": {Level: "high"}, "free": {Level: "batch"}, "top": {Level: " Critical "}})
	g := admission.MustNew(admission.Options{Identify: planned, Rate: plans, HTTP: admission.HTTP{LevelHeader: "X-Priority"}})
	for _, tc := range []struct {
		key   string
		route priority.Level
		wish  string
		want  priority.Level
	}{
		{"a/", priority.Normal, "", priority.Normal},
		{"a/pro", priority.Batch, "", priority.High},
		{"a/pro", priority.Normal, "", priority.High},
		{"a/pro", priority.Critical, "", priority.Critical},
		{"a/free", priority.High, "", priority.High},
		{"a/top", priority.Normal, "", priority.Critical},
		{"a/pro", priority.Normal, "batch", priority.Batch},
		{"a/free", priority.Normal, "critical", priority.Normal},
		{"/pro", priority.Normal, "", priority.Normal}, // nothing vouches for it
	} {
		if got := levelSeen(g, tc.route, "X-Key", tc.key, "X-Priority", tc.wish); got != tc.want {
			t.Errorf("%s on %v, client says %q: %v, want %v", tc.key, tc.route, tc.wish, got, tc.want)
		}
	}
	bounded := admission.MustNew(admission.Options{Rate: plans, Identify: func(*http.Request) (caller.Caller, error) {
		return caller.Caller{Key: "a", Plan: "pro", Verified: true, Level: caller.AtMost(priority.Normal)}, nil
	}})
	if got := levelSeen(bounded, priority.Normal); got != priority.Normal {
		t.Errorf("a caller held down: %v", got)
	}
}

func TestLevelNobodyKnowsIsAnErrorThatNamesThePlan(t *testing.T) {
	bad := fixedPlans(map[string]ratelimit.Plan{"pro": {Level: "vip"}, "free": {Level: "batch"}})
	for field, opts := range map[string]admission.Options{
		"Options.Rate":      {Rate: ratelimit.Scoped("x", bad)},
		"Options.Anonymous": {Anonymous: bad},
	} {
		_, err := admission.New(opts)
		if err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), `plan "pro"`) || !strings.Contains(err.Error(), `"vip"`) {
			t.Errorf("%s: error = %v", field, err)
		}
	}
	g := admission.MustNew(admission.Options{Identify: planned, Rate: ratelimit.TiersFunc(
		ratelimit.Plan{Burst: 9}, func(ratelimit.Key) ratelimit.Plan { return ratelimit.Plan{Burst: 9, Level: "vip"} })})
	if got := levelSeen(g, priority.High, "X-Key", "a/"); got != priority.High {
		t.Errorf("a function's unknown level moved the route's to %v", got)
	}
}

func TestShareCapsTheCallersPartOfThePool(t *testing.T) {
	for _, tc := range []struct {
		share      float64
		limit, cap int
		want       int
	}{
		{0.5, 10, 0, 5},
		{0.25, 10, 0, 3},  // rounded up
		{0.01, 10, 0, 1},  // at least one
		{0.07, 100, 0, 7}, // 0.07 × 100 is a little more than 7 in floats
		{1, 10, 0, 10},
		{0, 10, 0, 10},
		{0.5, 10, 3, 3}, // the smaller of the two
		{0.5, 10, 8, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := admission.MustNew(admission.Options{
				Identify: planned, Pool: admission.Pool{Limit: shed.Fixed(tc.limit), MaxWait: admission.NoWait}, CallerCap: tc.cap,
				Rate: ratelimit.Tiers(ratelimit.Plan{Allow: ratelimit.AllowEverything}, map[string]ratelimit.Plan{"p": {Share: tc.share}}),
			})
			block := newHeld()
			h := g.Handler(block)
			var wg sync.WaitGroup
			for range 2 * tc.limit {
				wg.Go(func() { do(h, request("GET", "/", "X-Key", "a/p")) })
			}
			synctest.Wait()
			if got := int(block.inside.Load()); got != tc.want {
				t.Errorf("share %v of %d, cap %d: %d inside, want %d", tc.share, tc.limit, tc.cap, got, tc.want)
			}
			close(block.release)
			wg.Wait()
			atRest(t, g)
		})
	}
}

func TestShareIsOfEachPool(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Identify: planned, Pool: admission.Pool{Limit: shed.Fixed(4)}, Pools: map[string]admission.Pool{"db": {Limit: shed.Fixed(8)}},
		Rate: ratelimit.Tiers(ratelimit.Plan{Allow: ratelimit.AllowEverything}, map[string]ratelimit.Plan{"p": {Share: 0.5}}),
	})
	ticket := admission.Ticket{Caller: caller.Caller{Key: "a", Plan: "p", Verified: true}}
	take := func(pool string, n int) (held []admission.Permit) {
		ticket.Pool = pool
		for range n {
			p, err := g.Admit(context.Background(), ticket)
			if err != nil {
				t.Fatalf("pool %q: %v", pool, err)
			}
			held = append(held, p)
		}
		if _, err := g.Admit(context.Background(), ticket); !errors.Is(err, shed.CallerCap) {
			t.Errorf("pool %q, one more than %d: %v", pool, n, err)
		}
		return held
	}
	db := take("db", 4)
	main := take("", 2)
	other := ticket
	other.Caller.Key = "b"
	p, err := g.Admit(context.Background(), other)
	if err != nil {
		t.Errorf("another caller: %v", err)
	}
	p.Release(shed.Served)
	for _, p := range append(db, main...) {
		p.Release(shed.Served)
	}
	atRest(t, g)
	for _, p := range take("db", 4) {
		p.Release(shed.Served)
	}
}

func TestPlanCountsWithoutHTTPToo(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Pool: admission.Pool{Limit: shed.Fixed(10)}, Rate: fixedPlans(map[string]ratelimit.Plan{"p": {Cost: 3, Level: "high"}}),
	})
	ticket := admission.Ticket{Caller: caller.Caller{Key: "a", Plan: "p", Verified: true}, Level: priority.Batch, Cost: 10}
	for range 2 {
		p, err := g.Admit(context.Background(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		p.Release(shed.Served)
	}
	if _, err := g.Admit(context.Background(), ticket); !errors.Is(err, shed.NotAdmissible) {
		t.Errorf("third of 30 from 60: %v", err)
	}
	if n := g.Stats().Visits[priority.High.Index()][shed.Admitted]; n != 2 {
		t.Errorf("%d admitted at High, want 2", n)
	}
	ticket.Caller.Verified = false
	for range 6 { // its plan is nobody's: 10 each
		p, err := g.Admit(context.Background(), ticket)
		if err != nil {
			t.Fatal(err)
		}
		p.Release(shed.Served)
	}
	if n := g.Stats().Visits[priority.Batch.Index()][shed.Admitted]; n != 6 {
		t.Errorf("%d admitted at Batch, want 6", n)
	}
}

func TestPlansAllocateNothing(t *testing.T) {
	ticket := admission.Ticket{Caller: caller.Caller{Key: "a", Plan: "p", Verified: true}}
	for name, l := range map[string]ratelimit.Limiter{
		"no plans": ratelimit.PerKey(1e9, 1<<30),
		"a table":  ratelimit.Tiers(ratelimit.Plan{Rate: 1, Burst: 1}, map[string]ratelimit.Plan{"p": {Rate: 1e9, Burst: 1 << 30, Cost: 2, Level: "high", Share: 0.5}}),
	} {
		g := admission.MustNew(admission.Options{Rate: l, CallerCap: 4, Pool: admission.Pool{Limit: shed.Fixed(10)}})
		if n := testing.AllocsPerRun(100, func() {
			p, err := g.Admit(context.Background(), ticket)
			if err != nil {
				t.Fatal(err)
			}
			p.Release(shed.Served)
		}); n != 0 {
			t.Errorf("%s: %v allocs", name, n)
		}
	}
}

// Two callers want more than there is; one has three times the weight of the other, by
// its plan or by itself, and its work takes ten times as long.
func TestAWeightIsAPartOfTheSlotTime(t *testing.T) {
	for name, gold := range map[string]caller.Caller{
		"of a plan":   {Key: "a", Plan: "gold", Verified: true},
		"of a caller": {Key: "a", Weight: 3, Verified: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.MustNew(admission.Options{
					Pool: admission.Pool{Limit: shed.Fixed(2), MaxWait: time.Hour},
					Rate: ratelimit.Tiers(ratelimit.Plan{Allow: ratelimit.AllowEverything}, map[string]ratelimit.Plan{"gold": {Weight: 3}}),
				})
				end := time.Now().Add(20 * time.Second)
				var wg sync.WaitGroup
				var had [2]atomic.Int64
				for i, w := range []struct {
					caller.Caller
					takes time.Duration
				}{{gold, 100 * time.Millisecond}, {caller.Caller{Key: "b", Verified: true}, 10 * time.Millisecond}} {
					for range 10 {
						wg.Go(func() {
							for time.Now().Before(end) {
								p, err := g.Admit(t.Context(), admission.Ticket{Caller: w.Caller})
								if err != nil {
									t.Error(err)
									return
								}
								time.Sleep(w.takes)
								p.Release(shed.Served)
								had[i].Add(int64(w.takes))
							}
						})
					}
				}
				wg.Wait()
				if part := float64(had[0].Load()) / float64(had[0].Load()+had[1].Load()); part < 0.72 || part > 0.78 {
					t.Errorf("weight 3 of 4 got %.2f of the slot time", part)
				}
			})
		})
	}
}

// A key that reads like an address has no part in the turns of that address.
func TestACallerOfAnotherKindHasTurnsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Hour}})
		end := time.Now().Add(10 * time.Second)
		var wg sync.WaitGroup
		var served [2]atomic.Int64
		work := func(i, workers int, c caller.Caller) {
			for range workers {
				wg.Go(func() {
					for time.Now().Before(end) {
						p, err := g.Admit(t.Context(), admission.Ticket{Caller: c})
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(10 * time.Millisecond)
						p.Release(shed.Served)
						served[i].Add(1)
					}
				})
			}
		}
		work(0, 20, caller.Caller{Key: "192.0.2.7", Space: "key", Verified: true})
		work(1, 2, caller.OfAddress("192.0.2.7"))
		wg.Wait()
		if key, address := served[0].Load(), served[1].Load(); address < 4*key/5 {
			t.Errorf("the address was served %d times beside %d of the key", address, key)
		}
	})
}
