package ratelimit_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

func hourly(n int, opts ...ratelimit.Option) *ratelimit.Buckets {
	return ratelimit.PerKey(rate.Every(time.Hour/time.Duration(n)), n, opts...)
}

// left returns what l would still admit to id at once.
func left(l ratelimit.Limiter, now time.Time, id string) (n int) {
	for l.(ratelimit.Peeker).Peek(now, key(id), n+1, 0).OK {
		n++
	}
	return n
}

func TestAllChargesAllOrNone(t *testing.T) {
	a, b, c := hourly(5, ratelimit.Name("a")), hourly(3, ratelimit.Name("b")), hourly(9, ratelimit.Name("c"))
	all := valid(t, ratelimit.All(a, b, c))
	d := take(all, t0, "x", 2)
	if !d.OK || d.Policy != "b" || d.Remaining != 1 {
		t.Errorf("got %+v, want the scarcest to be told of: b with 1 left", d)
	}
	if d := take(all, t0, "x", 2); d.OK || d.Policy != "b" || d.Wait != 20*time.Minute {
		t.Errorf("got %+v, want refused by b for 20 min", d)
	}
	if d := take(all, t0, "x", 4); !d.Never || d.Policy != "b" {
		t.Errorf("got %+v, want never, because of b", d)
	}
	for l, want := range map[*ratelimit.Buckets]int{a: 3, b: 1, c: 7} {
		if n := left(l, t0, "x"); n != want {
			t.Errorf("%s has %d left, want %d: a refusal charges none", l.Policy(key("x")).Name, n, want)
		}
	}
	d.Undo(t0)
	for l, want := range map[*ratelimit.Buckets]int{a: 5, b: 3, c: 9} {
		if n := left(l, t0, "x"); n != want {
			t.Errorf("%s has %d left, want %d after the undo", l.Policy(key("x")).Name, n, want)
		}
	}
}

func TestAllTellsTheLongestWait(t *testing.T) {
	short, long := ratelimit.PerKey(1, 1, ratelimit.Name("short")), hourly(1, ratelimit.Name("long"))
	for name, all := range map[string]ratelimit.Limiter{
		"long last":  ratelimit.All(short, long),
		"long first": ratelimit.All(long, short),
	} {
		take(all, t0, name, 1)
		if d := take(all, t0, name, 1); d.OK || d.Wait != time.Hour || d.Policy != "long" {
			t.Errorf("%s: %+v, want an hour, because of long", name, d)
		}
	}
}

func TestAllAdjustsAll(t *testing.T) {
	a, b := hourly(5), ratelimit.Global(rate.Every(time.Minute), 9)
	all := ratelimit.All(a, b)
	take(all, t0, "x", 3).Adjust(t0, -2)
	if n, m := left(a, t0, "x"), left(b, t0, "x"); n != 4 || m != 8 {
		t.Errorf("%d and %d left, want 4 and 8", n, m)
	}
	take(all, t0, "x", 1).Adjust(t0, 2)
	if n, m := left(a, t0, "x"), left(b, t0, "x"); n != 1 || m != 5 {
		t.Errorf("%d and %d left, want 1 and 5", n, m)
	}
}

func TestAllIsFlatAndBounded(t *testing.T) {
	if d := take(ratelimit.All(), t0, "x", 1); !d.OK || d.Remaining != math.MaxInt {
		t.Errorf("no limit at all: %+v", d)
	}
	const most = 6
	many := make([]ratelimit.Limiter, most-1)
	for i := range many {
		many[i] = hourly(3, ratelimit.Name(strconv.Itoa(i)))
	}
	all := valid(t, ratelimit.All(ratelimit.All(many...), hourly(2, ratelimit.Name("last"))))
	if d := take(all, t0, "x", 1); d.Policy != "last" || d.Remaining != 1 {
		t.Errorf("got %+v", d)
	}
	if n := len(ratelimit.AppendPolicies(nil, all, key("x"))); n != most {
		t.Errorf("%d policies, want %d", n, most)
	}
	for name, bad := range map[string]ratelimit.Limiter{
		"limits": ratelimit.All(all, hourly(1)),
		"named":  ratelimit.All(hourly(1), hourly(2)),
		"nil":    ratelimit.All(hourly(1), nil),
		"burst":  ratelimit.All(ratelimit.PerKey(1, 0)),
	} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: Validate() = %v", name, err)
		}
		if d := take(bad, t0, "x", 2); d.OK {
			t.Errorf("%s: %+v, want nothing admitted", name, d)
		}
	}
}

func TestComposedDecisionsAllocateNothing(t *testing.T) {
	all := ratelimit.All(
		ratelimit.Tiers(ratelimit.Plan{Rate: 1, Burst: 10}, nil),
		ratelimit.Scoped("route", ratelimit.PerKey(1e6, 1e6)),
		ratelimit.Shadow(ratelimit.PerKey(1, 1)),
		ratelimit.Global(1e6, 1e6),
	)
	now := t0
	allocs := testing.AllocsPerRun(1000, func() {
		now = now.Add(500 * time.Millisecond)
		if d := take(all, now, "x", 1); d.OK {
			d.Undo(now)
		}
		take(all, now, "x", 2)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func TestGlobalIsOneBucketForAll(t *testing.T) {
	l := valid(t, ratelimit.Global(1, 2))
	for i, id := range []string{"a", "b", "c"} {
		if d := take(l, t0, id, 1); d.OK != (i < 2) || d.Source != ratelimit.SourceLocal || d.Policy != "global" {
			t.Errorf("%s: %+v", id, d)
		}
	}
}

func TestScopedHasASpaceOfItsOwn(t *testing.T) {
	l := hourly(2)
	search, export := ratelimit.Scoped("search", l), ratelimit.Scoped("export", l)
	d := take(search, t0, "x", 2)
	if !d.OK || d.Policy != "search" {
		t.Fatalf("got %+v", d)
	}
	if n, m, k := left(search, t0, "x"), left(export, t0, "x"), left(l, t0, "x"); n != 0 || m != 2 || k != 2 {
		t.Errorf("%d, %d and %d left, want only the first used", n, m, k)
	}
	d.Adjust(t0, -1)
	if n := left(search, t0, "x"); n != 1 {
		t.Errorf("%d left after a refund, want 1", n)
	}
	d = take(search, t0, "x", 1)
	d.Undo(t0)
	if n := left(search, t0, "x"); n != 1 {
		t.Errorf("%d left after an undo, want 1", n)
	}
	if p := search.Policy(key("x")); p.Name != "search" || p.Burst != 2 {
		t.Errorf("policy %+v", p)
	}
	if ratelimit.Scoped("", l).Validate() == nil || ratelimit.Scoped("x", nil).Validate() == nil {
		t.Error("no name, or no limiter, is valid")
	}
}

func TestShadowDecidesAndLetsThrough(t *testing.T) {
	inner := hourly(1, ratelimit.Name("strict"))
	l := valid(t, ratelimit.Shadow(inner))
	for i := range 3 {
		d := take(l, t0, "x", 1)
		if !d.OK || d.Wait != 0 || (d.Shadow == "strict") != (i > 0) {
			t.Errorf("request %d: %+v", i, d)
		}
		if d.Policy != "" || d.Remaining != math.MaxInt {
			t.Errorf("request %d advertises what is not enforced: %+v", i, d)
		}
	}
	if n := ratelimit.StatsOf(l).Shadowed; n != 2 {
		t.Errorf("%d counted, want 2", n)
	}
	if !l.Policy(key("x")).Unlimited() || len(ratelimit.AppendPolicies(nil, l, key("x"))) != 0 {
		t.Error("a limit in shadow has a policy")
	}
	all := ratelimit.All(l, hourly(9, ratelimit.Name("real")))
	if d := take(all, t0, "x", 1); !d.OK || d.Shadow != "strict" || d.Policy != "real" || d.Remaining != 8 {
		t.Errorf("beside a real limit: %+v", d)
	}
	if ratelimit.Shadow(nil).Validate() == nil || ratelimit.Shadow(hourly(1, ratelimit.MaxKeys(-1))).Validate() == nil {
		t.Error("shadow hides a mistake")
	}
}

func TestQuotaOfAPolicy(t *testing.T) {
	for _, c := range []struct {
		p      ratelimit.Policy
		tokens int
		per    time.Duration
	}{
		{ratelimit.PerKey(10, 600).Policy(key("")), 600, time.Minute},
		{ratelimit.PerKey(50, 100).Policy(key("")), 100, 2 * time.Second},
		{ratelimit.PerKey(50, 10).Policy(key("")), 10, time.Second},
		{ratelimit.PerKey(10.0/60, 10).Policy(key("")), 10, time.Minute},
		{ratelimit.PerKey(3.0/86400, 3).Policy(key("")), 3, 24 * time.Hour},
		{ratelimit.PerKey(0, 3).Policy(key("")), 3, 0},
		{ratelimit.Policy{Rate: 1, Burst: 86400, Window: 24 * time.Hour}, 86400, 24 * time.Hour},
	} {
		if tokens, per := c.p.Quota(); tokens != c.tokens || per != c.per {
			t.Errorf("%+v: %d per %v, want %d per %v", c.p, tokens, per, c.tokens, c.per)
		}
	}
	if _, per := ratelimit.PerKey(1e-9, math.MaxInt).Policy(key("")).Quota(); per <= 0 {
		t.Errorf("the longest quota is per %v", per)
	}
}

func TestOwnBalances(t *testing.T) {
	config := hourly(2)
	one, two := ratelimit.Own(config, nil), ratelimit.Own(config, nil)
	take(one, t0, "x", 2)
	if n := left(two, t0, "x"); n != 2 {
		t.Errorf("two gates share a balance: %d left", n)
	}
	if ratelimit.Own(ratelimit.Unlimited, one) != ratelimit.Unlimited {
		t.Error("a limiter without balances was changed")
	}
}
