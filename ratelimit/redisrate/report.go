package redisrate

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
)

// Snapshot is a limiter at one moment: what is in force, where it stands with its
// store, and counters since it was made.
type Snapshot struct {
	ratelimit.StoreStats

	RoundTrip time.Duration // to the store, smoothed; 0 until the first answer
	Leasing   bool          // keys with the default numbers use leases
	LeaseSize int           // slots in a lease
	Reserve   int           // slots that all processes together may hold ahead of the rate
	Interval  time.Duration // what a lease covers at this distance
	Held      int           // slots held
	Full      uint64        // newcomers the table had no room for

	Decisions [ratelimit.SourceCount]struct{ Admitted, Refused uint64 } // by source
	Never     uint64                                                    // refused for good: cost above the burst
}

// Policy implements ratelimit.Limiter: the numbers in force for key, which may be
// a newer configuration's, lowered by a throttle, or this process' share.
func (l *Limiter) Policy(key ratelimit.Key) ratelimit.Policy {
	if d, ok := l.unmetered(key.Plan); ok {
		return unmeteredPolicy(l.conf.name, d.OK)
	}
	c := l.conf.forPlan(key.Plan)
	if l.bad != nil {
		return policyOf(c.Limit, l.conf.name)
	}
	e := l.table.find(key)
	if e == nil {
		return policyOf(c.Limit, l.conf.name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return policyOf(e.account.InForce(), l.conf.name)
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

// Snapshot returns the limiter's state and counters. It visits all keys: for a
// scrape, not for a request.
func (l *Limiter) Snapshot() Snapshot {
	s := Snapshot{StoreStats: l.StoreStats(), Never: l.never.Load()}
	if l.bad != nil {
		return s
	}
	c := l.conf
	terms := c.Law.Terms(c.Limit.Rate, c.Limit.Burst, l.link.view())
	s.RoundTrip, s.Full = l.link.trip.Value(), l.table.full.Load()
	s.Leasing, s.LeaseSize, s.Reserve, s.Interval = terms.Leasing, terms.Q, terms.Reserve, terms.Tau
	l.table.each(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		held, _ := e.account.Counts()
		s.Held += held
	})
	for i := range l.decisions {
		s.Decisions[i].Admitted = l.decisions[i].admitted.Load()
		s.Decisions[i].Refused = l.decisions[i].refused.Load()
	}
	return s
}

// StoreStats implements ratelimit.Stored: what metrics and the dashboard show. It
// visits all keys.
func (l *Limiter) StoreStats() ratelimit.StoreStats {
	c := l.conf
	s := ratelimit.StoreStats{Name: c.name, State: account.Shared.String(), Rate: rate.Limit(c.Limit.Rate), Burst: c.Limit.Burst}
	if l.bad != nil {
		s.Calls = callsOf(&callCounts{})
		return s
	}
	state, why, since := l.link.standing()
	s.State, s.Why, s.Since = state.String(), why.String(), since
	s.Peers = l.link.peers.Count()
	part := c.Portion / float64(max(1, c.MinPeers, s.Peers))
	s.ShareRate, s.ShareBurst = rate.Limit(c.Limit.Rate*part), int(max(1, float64(c.Limit.Burst)*part))
	s.Keys = int(l.table.count.Load())
	l.table.each(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		_, wasted := e.account.Counts()
		s.Wasted += wasted
		if e.account.Away() {
			s.AwayKeys++
		}
	})
	s.Degraded = state != account.Shared || s.AwayKeys > 0
	s.Calls, s.CallTime, s.Changes = callsOf(&l.link.counts), time.Duration(l.link.counts.time.Load()), l.link.counts.changes.Load()
	return s
}

// callsOf lists all results, the answered calls first.
func callsOf(c *callCounts) (list []ratelimit.StoreCalls) {
	for why := range c.results {
		result := account.Why(why).String()
		if account.Why(why) == account.WhyNothing {
			result = "ok"
		}
		list = append(list, ratelimit.StoreCalls{Result: result, Count: c.results[why].Load()})
	}
	return list
}

// Stats implements ratelimit.Counter: the table, as of a limiter in memory, and the
// store behind it. It visits all keys.
func (l *Limiter) Stats() ratelimit.Stats {
	if l.bad != nil {
		return ratelimit.Stats{}
	}
	return ratelimit.Stats{
		Keys: int(l.table.count.Load()), Peak: int(l.table.peak.Load()),
		MaxKeys: l.conf.maxKeys, Overflow: l.table.full.Load(),
		Stores: []ratelimit.StoreStats{l.StoreStats()},
	}
}

// Health reports whether the ceiling is shared. While the store is away it
// returns a warning text with what the store said last. That is no reason to call a process unready: taking
// processes away for a store's sake would turn its outage into one of the service. While the
// store answers, ok is true, and a warning says that the burst is too small for the distance:
// below rate × (2 round trips + Ahead), not all of the rate can be used.
func (l *Limiter) Health() (warning string, ok bool) {
	if l.bad != nil {
		return l.bad.Error(), false
	}
	state, why, since := l.link.standing()
	if state == account.Shared {
		return l.distance(), true
	}
	said := ""
	if text := l.link.said.Load(); text != nil {
		said = ": " + *text
	}
	return fmt.Sprintf("shared ceiling %q is %s for %s, requests are decided by policy %q (%s%s)",
		l.conf.name, state, since.Round(time.Second), l.conf.OnOutage, why, said), false
}

// distance says what a far store costs the default limit. Slots that are on their way, and
// those that are spent and not yet told, count against the burst for two round trips and
// what is handed out ahead.
func (l *Limiter) distance() (warning string) {
	c, trip := l.conf, l.link.trip.Value()
	lead := 2*trip + c.Law.Ahead
	needed := c.Limit.Rate * lead.Seconds()
	if trip == 0 || !l.metered() || float64(c.Limit.Burst) >= needed {
		return ""
	}
	return fmt.Sprintf("the store of ceiling %q is %s away: of %.4g a second at least %.4g can be used, all with a burst of %.0f",
		c.name, trip.Round(100*time.Microsecond), c.Limit.Rate, float64(c.Limit.Burst)/lead.Seconds(), math.Ceil(needed))
}

// metered says that the default numbers are in use.
func (l *Limiter) metered() bool { return l.conf.tiers.rest.Allow == ratelimit.AllowMetered }

var _ ratelimit.Stored = (*Limiter)(nil)
