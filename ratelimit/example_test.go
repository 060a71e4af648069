package ratelimit_test

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

func ExamplePerKey() {
	limit := ratelimit.PerKey(rate.Every(8*time.Hour), 3) // three a day
	acme := ratelimit.Key{Space: "key", ID: "acme"}
	for range 4 {
		d := limit.Take(context.Background(), t0, acme, 1, 0)
		fmt.Println(d.OK, d.Remaining, d.Wait)
	}
	// Output:
	// true 2 0s
	// true 1 0s
	// true 0 0s
	// false 0 8h0m0s
}

func ExamplePerKey_reserve() {
	calls := ratelimit.PerKey(10, 1)
	for range 3 {
		d := calls.Take(context.Background(), t0, ratelimit.Key{}, 1, 150*time.Millisecond)
		fmt.Println(d.OK, d.Wait)
	}
	// Output:
	// true 0s
	// true 100ms
	// false 200ms
}

func ExampleTiers() {
	limit := ratelimit.Tiers(
		ratelimit.Plan{Rate: 1, Burst: 5},
		map[string]ratelimit.Plan{
			"pro":      {Rate: 50, Burst: 100},
			"internal": {Allow: ratelimit.AllowEverything},
			"banned":   {Allow: ratelimit.AllowNothing},
		})
	for _, plan := range []string{"free", "pro", "internal", "banned"} {
		p := limit.Policy(ratelimit.Key{ID: "acme", Plan: plan})
		fmt.Println(plan, p.Unlimited(), p.Burst > 0)
	}
	// Output:
	// free false true
	// pro false true
	// internal true true
	// banned false false
}

func ExampleTiersFunc() {
	limit := ratelimit.TiersFunc(ratelimit.Plan{Rate: 1, Burst: 5}, func(k ratelimit.Key) ratelimit.Plan {
		if k.ID == "acme" {
			return ratelimit.Plan{Rate: 7, Burst: 70} // what their contract says
		}
		return ratelimit.Plan{} // unset: the fallback
	})
	fmt.Println(limit.Policy(ratelimit.Key{ID: "acme"}).Burst, limit.Policy(ratelimit.Key{ID: "globex"}).Burst)
	// Output: 70 5
}

func ExampleAll() {
	limit := ratelimit.All(
		ratelimit.PerKey(rate.Every(time.Minute), 1, ratelimit.Name("tenant")),
		ratelimit.Global(10.0/60, 10),
	)
	for _, id := range []string{"a", "a", "b"} {
		d := limit.Take(context.Background(), t0, ratelimit.Key{ID: id}, 1, 0)
		fmt.Println(id, d.OK, d.Policy, d.Wait)
	}
	// Output:
	// a true tenant 0s
	// a false tenant 1m0s
	// b true tenant 0s
}

func ExampleGlobal() {
	limit := ratelimit.Global(100, 1)
	for _, id := range []string{"a", "b"} {
		fmt.Println(limit.Take(context.Background(), t0, ratelimit.Key{ID: id}, 1, 0).OK)
	}
	// Output:
	// true
	// false
}

func ExampleScoped() {
	each := ratelimit.PerKey(1, 1)
	search, export := ratelimit.Scoped("search", each), ratelimit.Scoped("export", each)
	acme := ratelimit.Key{ID: "acme"}
	fmt.Println(search.Take(context.Background(), t0, acme, 1, 0).OK)
	fmt.Println(export.Take(context.Background(), t0, acme, 1, 0).OK)
	// Output:
	// true
	// true
}

func ExampleShadow() {
	limit := ratelimit.Shadow(ratelimit.PerKey(1, 1, ratelimit.Name("new-limit")))
	for range 2 {
		d := limit.Take(context.Background(), t0, ratelimit.Key{ID: "acme"}, 1, 0)
		fmt.Printf("%v %q\n", d.OK, d.Shadow)
	}
	// Output:
	// true ""
	// true "new-limit"
}

func ExampleOwn() {
	inForce := ratelimit.Own(ratelimit.PerKey(1, 10), nil)
	acme := ratelimit.Key{ID: "acme"}
	inForce.Take(context.Background(), t0, acme, 8, 0)
	inForce = ratelimit.Own(ratelimit.PerKey(1, 100), inForce) // a reload
	fmt.Println(inForce.Take(context.Background(), t0, acme, 1, 0).Remaining)
	// Output: 1
}

func ExampleDecision_Undo() {
	limit := ratelimit.PerKey(1, 10)
	acme := ratelimit.Key{ID: "acme"}
	d := limit.Take(context.Background(), t0, acme, 5, 0)
	d.Undo(t0)
	fmt.Println(limit.Take(context.Background(), t0, acme, 1, 0).Remaining)
	// Output: 9
}

func ExampleDecision_Adjust() {
	limit := ratelimit.PerKey(1, 10)
	acme := ratelimit.Key{ID: "acme"}
	limit.Take(context.Background(), t0, acme, 1, 0).Adjust(t0, 4) // it cost 5 after all
	fmt.Println(limit.Peek(t0, acme, 1, 0).Remaining)
	// Output: 4
}

func ExampleAppendPolicies() {
	limit := ratelimit.All(
		ratelimit.PerKey(10, 600, ratelimit.Name("tenant")),
		ratelimit.Global(1000, 2000),
		ratelimit.Shadow(ratelimit.PerKey(1, 1)),
	)
	for _, p := range ratelimit.AppendPolicies(nil, limit, ratelimit.Key{ID: "acme"}) {
		tokens, per := p.Quota()
		fmt.Printf("%q;q=%d;w=%.0f\n", p.Name, tokens, per.Seconds())
	}
	// Output:
	// "tenant";q=600;w=60
	// "global";q=2000;w=2
}

func ExampleStatsOf() {
	limit := ratelimit.PerKey(1, 1, ratelimit.MaxKeys(1))
	for _, id := range []string{"a", "b", "c"} {
		limit.Take(context.Background(), t0, ratelimit.Key{ID: id}, 1, 0)
	}
	s := ratelimit.StatsOf(limit)
	fmt.Println(s.Keys, s.MaxKeys, s.Overflow)
	// Output: 1 1 2
}

func ExampleUnlimited() {
	d := ratelimit.Unlimited.Take(context.Background(), t0, ratelimit.Key{}, 1, 0)
	fmt.Println(d.OK, ratelimit.Unlimited.Policy(ratelimit.Key{}).Unlimited())
	// Output: true true
}

func ExamplePlannerOf() {
	limit := ratelimit.All(
		ratelimit.Tiers(ratelimit.Plan{Rate: 1, Burst: 5}, map[string]ratelimit.Plan{
			"pro": {Rate: 50, Burst: 100, Level: "high", Share: 0.5},
		}),
		ratelimit.Global(1000, 2000))
	pro := ratelimit.PlannerOf(limit).PlanOf(ratelimit.Key{ID: "acme", Plan: "pro"})
	fmt.Println(pro.Level, pro.Share)
	fmt.Println(ratelimit.PlannerOf(ratelimit.PerKey(1, 5))) // nothing to say but the rate
	// Output:
	// high 0.5
	// <nil>
}
