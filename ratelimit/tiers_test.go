package ratelimit_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

func onPlan(l ratelimit.Limiter, now time.Time, plan string, cost int) ratelimit.Decision {
	return l.Take(context.Background(), now, ratelimit.Key{ID: "acme", Plan: plan}, cost, 0)
}

var free = ratelimit.Plan{Rate: 1, Burst: 5}

func tiers() *ratelimit.Buckets {
	return ratelimit.Tiers(free, map[string]ratelimit.Plan{
		"pro":      {Rate: 10, Burst: 50, Cost: 2, Level: "high", Share: 0.5},
		"trial":    {Cost: 3},
		"internal": {Allow: ratelimit.AllowEverything},
		"banned":   {Allow: ratelimit.AllowNothing},
		"once":     {Rate: 0, Burst: 1},
	})
}

func TestUnsetZeroAndUnlimitedAreThreeThings(t *testing.T) {
	l := valid(t, tiers())
	for plan, want := range map[string]struct {
		now, later int // of 100 at once, and of 100 more a day later
	}{
		"": {5, 5}, "unknown": {5, 5}, "trial": {5, 5}, "pro": {50, 50},
		"internal": {100, 100}, "banned": {0, 0}, "once": {1, 0},
	} {
		count := func(now time.Time) (n int) {
			for range 100 {
				k := ratelimit.Key{ID: "on " + plan, Plan: plan}
				if l.Take(context.Background(), now, k, 1, 0).OK {
					n++
				}
			}
			return n
		}
		if now, later := count(t0), count(t0.Add(24*time.Hour)); now != want.now || later != want.later {
			t.Errorf("plan %q: %d and %d passed, want %d and %d", plan, now, later, want.now, want.later)
		}
	}
	if d := onPlan(l, t0, "banned", 1); !d.Never {
		t.Errorf("banned: %+v, want no advice to wait", d)
	}
	if d := onPlan(l, t0, "internal", math.MaxInt); !d.OK || d.Remaining != math.MaxInt {
		t.Errorf("internal: %+v", d)
	}
	if !l.Policy(ratelimit.Key{Plan: "internal"}).Unlimited() || l.Policy(ratelimit.Key{Plan: "banned"}).Burst != 0 {
		t.Error("policies do not say what is in force")
	}
}

func TestPlanOfKeepsWhatTheGateReads(t *testing.T) {
	l := ratelimit.All(ratelimit.Scoped("s", ratelimit.Shadow(tiers())), hourly(1))
	p := l.(ratelimit.Planner).PlanOf(ratelimit.Key{Plan: "pro"})
	if p.Cost != 2 || p.Level != "high" || p.Share != 0.5 || p.Rate != 10 {
		t.Errorf("pro: %+v", p)
	}
	if p := tiers().PlanOf(ratelimit.Key{Plan: "trial"}); p.Cost != 3 || p.Rate != free.Rate || p.Burst != free.Burst {
		t.Errorf("trial: %+v, want the fallback's numbers and its own cost", p)
	}
}

func TestChangingPlanKeepsTheBalance(t *testing.T) {
	l := tiers()
	onPlan(l, t0, "pro", 47) // 3 left
	if d := onPlan(l, t0, "free", 1); !d.OK || d.Remaining != 2 {
		t.Errorf("down: %+v, want 2 left", d)
	}
	if d := onPlan(l, t0, "pro", 1); !d.OK || d.Remaining != 1 {
		t.Errorf("up again: %+v, want 1 left", d)
	}
	// The time before the change counts at the old rate: 2 s on free are 2 tokens.
	onPlan(l, t0, "free", 1)
	if d := onPlan(l, t0.Add(2*time.Second), "pro", 1); !d.OK || d.Remaining != 1 {
		t.Errorf("after 2 s: %+v, want 1 left", d)
	}
	onPlan(l, t0.Add(time.Minute), "pro", 1) // full but one
	if d := onPlan(l, t0.Add(time.Minute), "free", 1); !d.OK || d.Remaining != 4 {
		t.Errorf("down from a full bucket: %+v, want what the new burst holds, less one", d)
	}
}

func TestOldGrantsBuyNothingOnANewPlan(t *testing.T) {
	l := tiers()
	d := onPlan(l, t0, "pro", 40)
	onPlan(l, t0, "free", 5)
	onPlan(l, t0, "pro", 1)
	d.Undo(t0)
	if d := onPlan(l, t0, "pro", 1); d.OK {
		t.Errorf("got %+v", d)
	}
}

func TestTiersFromAFunction(t *testing.T) {
	l := valid(t, ratelimit.TiersFunc(free, func(k ratelimit.Key) ratelimit.Plan {
		switch k.Plan {
		case "big":
			return ratelimit.Plan{Rate: 1, Burst: len(k.ID) * 10}
		case "internal":
			return ratelimit.Plan{Allow: ratelimit.AllowEverything}
		case "mad":
			return ratelimit.Plan{Rate: rate.Inf, Burst: 1}
		}
		return ratelimit.Plan{}
	}))
	for plan, want := range map[string]int{"": 4, "big": 39, "mad": 4, "internal": math.MaxInt} {
		k := ratelimit.Key{Space: plan, ID: "acme", Plan: plan}
		if d := l.Take(context.Background(), t0, k, 1, 0); !d.OK || d.Remaining != want {
			t.Errorf("plan %q: %+v, want %d left", plan, d, want)
		}
	}
}

func TestAFunctionCannotFillMemoryWithNumbers(t *testing.T) {
	n := 0
	l := ratelimit.TiersFunc(free, func(ratelimit.Key) ratelimit.Plan {
		n++
		return ratelimit.Plan{Rate: 1, Burst: 10 + n}
	})
	for range 5000 {
		take(l, t0, "a", 1)
	}
	if d := take(l, t0, "fresh", 1); !d.OK || d.Remaining != free.Burst-1 {
		t.Errorf("got %+v, want the fallback after too many kinds of numbers", d)
	}
}

func TestBadPlansAreNamed(t *testing.T) {
	for name, p := range map[string]ratelimit.Plan{
		"rate":  {Rate: -1, Burst: 1},
		"burst": {Rate: 1},
		"Allow": {Allow: 7},
		"Rate":  {Allow: ratelimit.AllowEverything, Rate: 1},
		"Cost":  {Rate: 1, Burst: 1, Cost: -1},
		"Share": {Rate: 1, Burst: 1, Share: math.NaN()},
	} {
		err := ratelimit.Tiers(free, map[string]ratelimit.Plan{"gold": p}).Validate()
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), `"gold"`) {
			t.Errorf("%s: Validate() = %v, want the plan and the field named", name, err)
		}
	}
	if ratelimit.Tiers(ratelimit.Plan{}, nil).Validate() == nil || ratelimit.TiersFunc(free, nil).Validate() == nil {
		t.Error("no fallback, or no function, is valid")
	}
}

func TestReloadKeepsBalancesAndCountsFromNow(t *testing.T) {
	old := ratelimit.Own(ratelimit.PerKey(1, 10), nil)
	take(old, t0, "x", 8)
	abandoned := ratelimit.Own(ratelimit.PerKey(1000, 1000), old)
	next := ratelimit.Own(ratelimit.PerKey(100, 20), old)
	if d := take(old, t0.Add(time.Second), "x", 1); !d.OK || d.Remaining != 2 {
		t.Errorf("before the first use of the new numbers: %+v, want 2 left", d)
	}
	reloaded := t0.Add(2 * time.Second)
	if d := take(next, reloaded, "y", 1); !d.OK || d.Remaining != 9 {
		t.Errorf("a newcomer at the reload: %+v, want a full bucket under the old numbers", d)
	}
	// x: 2 left, one more until the reload, 10 in the tenth of a second since.
	if d := take(next, reloaded.Add(100*time.Millisecond), "x", 1); !d.OK || d.Remaining != 12 {
		t.Errorf("after the reload: %+v, want 12 left", d)
	}
	if d := take(old, reloaded.Add(200*time.Millisecond), "x", 20); !d.OK || d.Remaining != 0 {
		t.Errorf("the old limiter: %+v, want the new numbers to count", d)
	}
	smaller := ratelimit.Own(ratelimit.PerKey(1, 4), next)
	if d := take(smaller, reloaded.Add(time.Minute), "x", 1); !d.OK || d.Remaining != 3 {
		t.Errorf("a smaller burst: %+v, want 3 left", d)
	}
	_ = abandoned
}

func TestReloadKeepsEachPlanAndEachPart(t *testing.T) {
	config := func(burst int) ratelimit.Limiter {
		return ratelimit.All(
			ratelimit.Tiers(free, map[string]ratelimit.Plan{"pro": {Rate: 1, Burst: burst}}, ratelimit.Name("tenant")),
			ratelimit.Scoped("route", hourly(burst)),
			ratelimit.Global(1, 10*burst),
		)
	}
	gate := ratelimit.Own(config(50), nil)
	onPlan(gate, t0, "pro", 45)
	gate = ratelimit.Own(config(60), gate)
	if d := onPlan(gate, t0, "pro", 6); d.OK || d.Remaining != 5 || d.Wait < time.Second {
		t.Errorf("got %+v, want 5 left", d)
	}
	// A part alone keeps its balance, and so does one that goes into shadow.
	alone := ratelimit.Own(ratelimit.Global(1, 600), gate)
	if d := take(alone, t0, "x", 1); d.Remaining != 454 {
		t.Errorf("the global limit alone: %+v, want 454 left", d)
	}
	shadow := ratelimit.Own(ratelimit.Shadow(ratelimit.Global(1, 600)), alone)
	back := ratelimit.Own(ratelimit.Global(1, 600), shadow)
	if d := take(back, t0, "x", 1); d.Remaining != 453 {
		t.Errorf("through shadow and back: %+v, want 453 left", d)
	}
	if d := take(ratelimit.Own(ratelimit.Global(1, 600, ratelimit.Name("other")), back), t0, "x", 1); d.Remaining != 599 {
		t.Errorf("another name: %+v, want balances of its own", d)
	}
}
