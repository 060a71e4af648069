package ratelimit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/ratelimit"
)

func TestPlannerIsThePartThatSaysMoreThanARate(t *testing.T) {
	plain := ratelimit.PerKey(1, 1)
	rates := ratelimit.Tiers(ratelimit.Plan{Rate: 1, Burst: 1}, map[string]ratelimit.Plan{"pro": {Rate: 9, Burst: 9}})
	more := func(p ratelimit.Plan) *ratelimit.Buckets {
		return ratelimit.Tiers(ratelimit.Plan{Rate: 1, Burst: 1}, map[string]ratelimit.Plan{"pro": p}, ratelimit.Name("more"))
	}
	costly, ranked, shared := more(ratelimit.Plan{Cost: 2}), more(ratelimit.Plan{Level: "high"}), more(ratelimit.Plan{Share: 0.5})
	asked := ratelimit.TiersFunc(ratelimit.Plan{Rate: 1, Burst: 1}, func(ratelimit.Key) ratelimit.Plan { return ratelimit.Plan{} })
	for name, tc := range map[string]struct {
		limit ratelimit.Limiter
		want  ratelimit.Planner
	}{
		"nil":             {nil, nil},
		"unlimited":       {ratelimit.Unlimited, nil},
		"one rate":        {plain, nil},
		"rates only":      {rates, nil},
		"cost 1 is none":  {more(ratelimit.Plan{Cost: 1}), nil},
		"a cost":          {costly, costly},
		"a level":         {ranked, ranked},
		"a share":         {shared, shared},
		"a function":      {asked, asked},
		"behind others":   {ratelimit.All(plain, rates, costly), costly},
		"the first of":    {ratelimit.All(ranked, costly), ranked},
		"in a scope":      {ratelimit.Scoped("x", costly), costly},
		"in shadow":       {ratelimit.Shadow(ratelimit.All(plain, costly)), costly},
		"nothing in them": {ratelimit.All(ratelimit.Scoped("x", plain), ratelimit.Shadow(rates)), nil},
	} {
		if got := ratelimit.PlannerOf(tc.limit); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if p := ratelimit.All(plain, costly).(ratelimit.Planner).PlanOf(ratelimit.Key{Plan: "pro"}); p.Cost != 2 {
		t.Errorf("a joint limit's plan = %+v", p)
	}
}

func TestPlansAreListedWithTheFallbackFirst(t *testing.T) {
	l := ratelimit.Tiers(ratelimit.Plan{Rate: 1, Burst: 1}, map[string]ratelimit.Plan{"pro": {Cost: 2}, "free": {Share: 0.5}})
	var names []string
	for name, p := range l.Plans() {
		names = append(names, name)
		if p.Rate != 1 || p.Burst != 1 {
			t.Errorf("%q: %+v; unset numbers are the fallback's", name, p)
		}
	}
	if !slices.Equal(names, []string{"", "free", "pro"}) {
		t.Errorf("names = %q", names)
	}
	for range l.Plans() {
		break // may stop early
	}
}

func TestPartsOfADecisionHaveNamesOfTheirOwn(t *testing.T) {
	twins := ratelimit.All(ratelimit.PerKey(1, 1), ratelimit.Scoped("x", ratelimit.PerKey(1, 1)), ratelimit.PerKey(2, 2))
	if err := twins.Validate(); err == nil || !strings.Contains(err.Error(), `"default"`) {
		t.Errorf("error = %v, want one that names the name", err)
	}
	named := ratelimit.All(ratelimit.PerKey(1, 1), ratelimit.PerKey(2, 2, ratelimit.Name("minute")), ratelimit.Unlimited, ratelimit.Unlimited)
	if err := named.Validate(); err != nil {
		t.Error(err)
	}
}
