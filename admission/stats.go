package admission

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/admission/internal/top"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Stats is a snapshot of a gate: the numbers in force and what has happened since
// it was built. Each figure is exact; figures read a moment apart may differ.
type Stats struct {
	Name     string
	ID       uint64 // tells the gates of one process apart, whatever their names
	Draining bool
	Lowest   priority.Level                           // the lowest level that pressure lets in; Batch: all
	Visits   [priority.Count][shed.ReasonCount]uint64 // ended visits by level and reason; Admitted counts at admission
	Shadowed [priority.Count][shed.ReasonCount]uint64 // admitted visits that a layer in shadow mode would have refused
	Pools    []PoolStats                              // the unnamed pool first, then by name
	Limits   []LimitStats                             // those that limit anything
	Streams  int                                      // that left their slot and are open
	Limited  []CallerCount                            // those most refused by limits of their own lately, the most first
	Refused  []CallerCount                            // those most refused for want of capacity lately
	Served   []CallerCount                            // those served most lately
	Busiest  []CallerCount                            // those whose work held slots longest lately, in microseconds
	Routes   []RouteStats                             // visits that have ended, by the pattern of their route
}

// PoolStats is a snapshot of one pool.
type PoolStats struct {
	Name string
	queue.Stats
}

// CallerCount is how much of something a caller had lately. Refusals by limits of its
// own are counted each; of the other visits of a busy route, one in sixteen stands for
// all.
type CallerCount struct {
	Alias string // what Gate.Alias calls it; never its key
	Count uint64 // in the last half to one minute
}

func callerCounts(entries []top.Entry) (all []CallerCount) {
	for _, e := range entries {
		all = append(all, CallerCount(e))
	}
	return all
}

// RouteStats counts the visits of one route that have ended. Its Pattern comes from the
// router or from Options.Routes, never from a client: empty where neither names one,
// "other" for the routes beyond the first hundred.
type RouteStats = top.RouteCounts

// Count returns the visits of all levels that ended with the given reason.
func (s Stats) Count(r shed.Reason) (n uint64) {
	for l := range s.Visits {
		n += s.Visits[l][r]
	}
	return n
}

// InFlight returns the work that holds a slot, in all pools.
func (s Stats) InFlight() (n int) {
	for _, p := range s.Pools {
		n += p.InFlight
	}
	return n
}

// counts finds the counts of a route without looking for its pattern, which is nearly
// always the first that it had.
type counts struct{ first atomic.Pointer[top.Route] }

func (c *counts) of(pattern string, all *top.Routes) *top.Route {
	first := c.first.Load()
	if first != nil && first.Pattern == pattern {
		return first
	}
	found := all.Of(pattern)
	if first == nil {
		c.first.CompareAndSwap(nil, found)
	}
	return found
}

// ends returns the counts of the visit's route.
func (v *visit) ends() *top.Route {
	c := &v.gate.direct
	if v.route != nil {
		c = v.route.counts
	}
	return c.of(v.pattern, &v.gate.visited)
}

// tally counts how visits ended.
type tally struct {
	visits, shadowed [priority.Count][shed.ReasonCount]atomic.Uint64
}

func (t *tally) read(s *Stats) {
	for l := range t.visits {
		for r := range t.visits[l] {
			s.Visits[l][r] = t.visits[l][r].Load()
			s.Shadowed[l][r] = t.shadowed[l][r].Load()
		}
	}
}

// LimitStats is a snapshot of one of a gate's limits.
type LimitStats struct {
	Name   string           // "rate", "anonymous", "address", "quota"; "preflight", once there was one; "route": those of the routes, together
	Policy ratelimit.Policy // the numbers of a caller without a plan; zero for "route", where they differ
	ratelimit.Stats
}

// limitStats reads the limits that limit anything.
func limitStats(g *Gate, c *config) (all []LimitStats) {
	for _, l := range []struct {
		name string
		ratelimit.Limiter
	}{{"rate", c.Rate}, {"anonymous", c.Anonymous}, {"address", c.Address}, {"quota", c.Quota}} {
		if l.Limiter != ratelimit.Unlimited {
			all = append(all, LimitStats{l.name, l.Policy(ratelimit.Key{}), ratelimit.StatsOf(l.Limiter)})
		}
	}
	if preflights := ratelimit.StatsOf(c.HTTP.PreflightRate); preflights.Keys > 0 {
		all = append(all, LimitStats{"preflight", c.HTTP.PreflightRate.Policy(ratelimit.Key{}), preflights})
	}
	if routes, limited := routeStats(g, c); limited {
		all = append(all, routes)
	}
	return all
}

// routeStats adds up the limits of the routes' own, and says whether there are any.
func routeStats(g *Gate, c *config) (sum LimitStats, limited bool) {
	g.mu.Lock()
	routes := slices.Clone(g.routes)
	g.mu.Unlock()
	if c.rules != nil {
		routes = slices.AppendSeq(routes, maps.Values(c.rules.routes))
	}
	sum.Name = "route"
	for _, rt := range routes {
		if rt.limit != nil {
			limited = true
			sum.Add(ratelimit.StatsOf(rt.limit))
		}
	}
	return sum, limited
}

// lists know which callers have most of what.
type lists struct{ limited, turned, served, busy *top.List }

func newLists() lists { return lists{top.New(), top.New(), top.New(), top.New()} }

// refused notes a refusal that stands for n.
func (l *lists) refused(v *visit, n uint64) {
	switch {
	case v.ownLimit():
		l.limited.Note(v.now, v.Caller, 1)
	case n > 0 && v.reason != shed.Unidentified && v.reason != shed.ClientGone:
		l.turned.Note(v.now, v.Caller, n)
	}
}

// ownLimit reports whether a limit of the caller's own refused it.
func (v *visit) ownLimit() bool {
	return v.reason == shed.RateLimited || v.reason == shed.NotAdmissible || v.reason == shed.CallerCap
}

// ended notes the end of work that stands for n.
func (l *lists) ended(v *visit, held time.Duration, n uint64) {
	if n > 0 {
		now := v.now.Add(held)
		l.served.Note(now, v.Caller, n)
		l.busy.Note(now, v.Caller, n*uint64(max(held.Microseconds(), 1)))
	}
}

func (l *lists) read(now time.Time, s *Stats) {
	s.Limited, s.Refused = callerCounts(l.limited.Top(now)), callerCounts(l.turned.Top(now))
	s.Served, s.Busiest = callerCounts(l.served.Top(now)), callerCounts(l.busy.Top(now))
}
