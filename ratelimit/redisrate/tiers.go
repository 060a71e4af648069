package redisrate

import (
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

// Tiers returns a limiter like PerKey whose numbers depend on Key.Plan, as
// ratelimit.Tiers does in memory. Keys whose plan is unknown or unset get the
// fallback, which must be set. A key that changes plan keeps its balance, as much
// as the new burst holds.
func Tiers(rdb redis.UniversalClient, fallback ratelimit.Plan, plans map[string]ratelimit.Plan, options ...Option) *Limiter {
	return build(rdb, fallback, plans, options)
}

// tiers are the plans of a limiter: what was sold, and the configuration of those
// that are metered.
type tiers struct {
	rest  ratelimit.Plan
	plans map[string]ratelimit.Plan
	conf  map[string]*config
}

func (ts *tiers) validate() error {
	for name, p := range ts.plans {
		if p.Allow > ratelimit.AllowNothing {
			return fmt.Errorf("redisrate: Allow of plan %q is %d, must be Metered, Everything or Nothing", name, p.Allow)
		}
		if p.Allow != ratelimit.AllowMetered {
			continue
		}
		if err := limitOf(p).validate("rate of plan "+name, "burst of plan "+name); err != nil {
			return err
		}
	}
	return nil
}

func limitOf(p ratelimit.Plan) limit { return limit{rate: float64(p.Rate), burst: p.Burst} }

// setPlans copies the table, with the fallback's numbers where a plan has none.
func (c *config) setPlans(fallback ratelimit.Plan, plans map[string]ratelimit.Plan) {
	c.tiers = tiers{rest: fallback, plans: map[string]ratelimit.Plan{}, conf: map[string]*config{}}
	for name, p := range plans {
		if p.Unset() {
			p.Rate, p.Burst, p.Allow = fallback.Rate, fallback.Burst, fallback.Allow
		}
		c.tiers.plans[name] = p
		d := *c
		d.limit.rate, d.limit.burst = float64(p.Rate), p.Burst
		c.tiers.conf[name] = &d
	}
}

// forPlan returns the configuration for callers of a plan.
func (c *config) forPlan(plan string) *config {
	if d := c.tiers.conf[plan]; d != nil {
		return d
	}
	return c
}

// PlanOf implements ratelimit.Planner.
func (l *Limiter) PlanOf(key ratelimit.Key) ratelimit.Plan {
	if p, ok := l.conf.tiers.plans[key.Plan]; ok {
		return p
	}
	return l.conf.tiers.rest
}

// unmetered answers for plans that have no numbers; ok is false for the others.
func (l *Limiter) unmetered(plan string) (d ratelimit.Decision, ok bool) {
	if len(l.conf.tiers.plans) == 0 {
		return d, false
	}
	p, known := l.conf.tiers.plans[plan]
	if !known {
		p = l.conf.tiers.rest
	}
	switch p.Allow {
	case ratelimit.AllowEverything:
		return everything, true
	case ratelimit.AllowNothing:
		return ratelimit.Decision{Never: true, Policy: l.conf.name}, true
	}
	return d, false
}

var everything = ratelimit.Decision{OK: true, Remaining: math.MaxInt}

func unmeteredPolicy(name string, all bool) ratelimit.Policy {
	if all {
		return ratelimit.Policy{Name: name, Rate: rate.Inf, Burst: math.MaxInt}
	}
	return ratelimit.Policy{Name: name}
}
