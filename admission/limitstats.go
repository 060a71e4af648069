package admission

import (
	"maps"
	"slices"

	"github.com/headgate-go/headgate/ratelimit"
)

// LimitStats is a snapshot of one of a gate's limits.
type LimitStats struct {
	Name   string           // "rate", "anonymous", "address", "quota"; "route": those of the routes, together
	Policy ratelimit.Policy // the numbers of a caller without a plan; zero for "route", where they differ
	ratelimit.Stats
}

// limitStats reads the limits that limit anything.
func (g *Gate) limitStats(c *config) (all []LimitStats) {
	for _, l := range []struct {
		name string
		ratelimit.Limiter
	}{{"rate", c.Rate}, {"anonymous", c.Anonymous}, {"address", c.Address}, {"quota", c.Quota}} {
		if l.Limiter != ratelimit.Unlimited {
			all = append(all, LimitStats{l.name, l.Policy(ratelimit.Key{}), ratelimit.StatsOf(l.Limiter)})
		}
	}
	if routes, limited := g.routeStats(c); limited {
		all = append(all, routes)
	}
	return all
}

// routeStats adds up the limits of the routes' own, and says whether there are any.
func (g *Gate) routeStats(c *config) (sum LimitStats, limited bool) {
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
