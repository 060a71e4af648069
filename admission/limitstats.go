package admission

import "github.com/headgate-go/headgate/ratelimit"

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
	g.mu.Lock()
	defer g.mu.Unlock()
	routes := LimitStats{Name: "route"}
	limited := false
	for _, rt := range g.routes {
		if rt.limit != nil {
			limited = true
			routes.Add(ratelimit.StatsOf(rt.limit))
		}
	}
	if limited {
		all = append(all, routes)
	}
	return all
}
