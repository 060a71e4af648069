package ratelimit

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/time/rate"
)

// Plan is what a caller has been sold. The zero Plan is unset: the caller gets the
// fallback. Unlimited and forbidden are said by Allow, never by a number.
//
// Cost, Level and Share are not about rates and the limiter does not read them:
// they ride here so that a plan is one row of one table, for the gate to apply.
type Plan struct {
	Rate  rate.Limit // tokens per second; with a burst, 0 means burst tokens ever
	Burst int        // most tokens at once, at least 1
	Allow Allow      // Metered, unless everything or nothing is admitted

	Cost  int     // what each request costs more than the route says, as a factor; 0 is 1
	Level string  // name of a priority level, "" for the route's
	Share float64 // part of the slots in flight, in (0, 1]; 0 for no cap of its own
}

// Allow says whether a plan's numbers count.
type Allow uint8

// What a plan allows.
const (
	Metered    Allow = iota // Rate and Burst
	Everything              // no limit
	Nothing                 // always refused, without advice to wait
)

// Unset reports whether the plan says nothing about the rate.
func (p Plan) Unset() bool { return p.Allow == Metered && p.Rate == 0 && p.Burst == 0 }

// Tiers returns a limiter like [PerKey] whose numbers depend on Key.Plan. Keys
// whose plan is unknown or unset get the fallback, which must be set. The table is
// copied. A key that changes plan keeps its balance, as much as the new burst
// holds; a key at rest, which is one whose bucket has been full for a second, is full
// under whatever plan it has next.
func Tiers(fallback Plan, plans map[string]Plan, opts ...Option) *Buckets {
	b := newBuckets(fallback, "default", opts)
	b.plans = make(map[string]tier, len(plans))
	for name, plan := range plans {
		if plan.Unset() {
			plan.Rate, plan.Burst, plan.Allow = fallback.Rate, fallback.Burst, fallback.Allow
		}
		t, err := newTier(plan)
		b.fail(name, err)
		b.plans[name] = t
	}
	return b
}

// TiersFunc is [Tiers] with a function, for numbers that are a caller's own. It is
// called at each decision, possibly concurrently, and must be fast. A plan that is
// unset or not valid means the fallback; so do further numbers once the function
// has named 4,096 different pairs of them.
func TiersFunc(fallback Plan, pick func(Key) Plan, opts ...Option) *Buckets {
	b := newBuckets(fallback, "default", opts)
	b.pick = pick
	if pick == nil {
		b.fail("", errors.New("the function that picks plans is nil"))
	}
	return b
}

// tier is a plan checked and worked out.
type tier struct {
	Plan
	pace
}

func newTier(p Plan) (tier, error) {
	switch {
	case p.Allow > Nothing:
		return tier{}, fmt.Errorf("Allow is %d, must be Metered, Everything or Nothing", p.Allow)
	case p.Allow != Metered && (p.Rate != 0 || p.Burst != 0):
		return tier{}, errors.New("Rate and Burst must be zero where Allow is not Metered")
	case p.Cost < 0:
		return tier{}, fmt.Errorf("Cost is %d, must not be negative", p.Cost)
	case math.IsNaN(p.Share) || p.Share < 0 || p.Share > 1:
		return tier{}, fmt.Errorf("Share is %v, must be between 0 and 1", p.Share)
	case p.Allow != Metered:
		return tier{Plan: p}, nil
	}
	pace, err := newPace(p.Rate, p.Burst)
	return tier{Plan: p, pace: pace}, err
}

// PlanOf implements [Planner].
func (b *Buckets) PlanOf(key Key) Plan {
	if b.pick != nil {
		return b.picked(key)
	}
	if t, ok := b.plans[key.Plan]; ok {
		return t.Plan
	}
	return b.rest.Plan
}

// picked returns what the function says, with the fallback's numbers where it says
// nothing or nothing valid.
func (b *Buckets) picked(key Key) Plan {
	p := b.pick(key)
	if p.Unset() || p.Allow > Nothing || p.Allow == Metered && (p.Burst < 1 || checkRate(p.Rate) != nil) {
		p.Rate, p.Burst, p.Allow = b.rest.Rate, b.rest.Burst, b.rest.Allow
	}
	return p
}
