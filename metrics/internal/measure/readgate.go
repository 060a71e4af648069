package measure

import (
	"math"
	"slices"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func emitGate(emit Emit, g admission.Stats) {
	emit(Draining, oneIf(g.Draining), g.Name)
	emit(Streams, float64(g.Streams), g.Name)
	for l := range g.Shadowed {
		for r, n := range g.Shadowed[l] {
			if n > 0 {
				emit(Shadowed, float64(n), g.Name, priority.All()[l].String(), shed.Reason(r).String())
			}
		}
	}
}

// emitRoute shows how the visits of a route ended, each of them once.
func emitRoute(emit Emit, gate string, r admission.RouteStats) {
	var exempt, refused uint64
	for l := range r.Visits {
		for why, n := range r.Visits[l] {
			switch {
			case shed.Reason(why) == shed.Exempt:
				exempt += n
			case shed.Reason(why).Refused():
				refused += n
			}
		}
	}
	show := func(outcome string, n uint64) {
		if n > 0 {
			emit(RouteRequests, float64(n), gate, r.Pattern, outcome)
		}
	}
	for o, n := range r.Outcomes {
		show(shed.Outcome(o).String(), n)
	}
	show("exempt", exempt)
	show("refused", refused)
	emit(RouteSlotSeconds, r.Held.Seconds(), gate, r.Pattern)
}

func emitPool(emit Emit, gate string, p admission.PoolStats) {
	emit(Limit, float64(p.Limit), gate, p.Name)
	if p.Most > 0 {
		emit(LimitLeast, float64(p.Least), gate, p.Name)
		emit(LimitMost, float64(p.Most), gate, p.Name)
	}
	for c, n := range p.Moves {
		if c := shed.Cause(c); c != shed.CauseNone {
			emit(LimitMoves, float64(n), gate, p.Name, c.String())
		}
		emit(LimitCause, oneIf(shed.Cause(c) == p.Cause), gate, p.Name, shed.Cause(c).String())
	}
	emit(InFlight, float64(p.InFlight), gate, p.Name)
	for l := range p.Waiting {
		level := priority.All()[l].String()
		emit(QueueDepth, float64(p.Waiting[l]), gate, p.Name, level)
		emit(QueueBytes, float64(p.WaitingBytes[l]), gate, p.Name, level)
		emit(SlotSeconds, p.SlotTime[l].Seconds(), gate, p.Name, level)
	}
	emit(QueueBound, float64(p.Bound), gate, p.Name)
	emit(QueueOldest, p.Oldest.Seconds(), gate, p.Name)
	emit(EstimatedSeconds, p.Estimated.Seconds(), gate, p.Name)
	emit(EstimateError, p.EstimateOff.Seconds(), gate, p.Name)
	emit(DrainRate, p.DrainRate, gate, p.Name)
	emit(ServiceMedian, p.Service.Seconds(), gate, p.Name)
}

func emitLimit(emit Emit, gate string, l admission.LimitStats) {
	if l.Policy.Burst > 0 || l.Policy.Rate > 0 {
		emit(RateInForce, perSecond(l.Policy.Rate), gate, l.Name)
		emit(RateBurst, float64(l.Policy.Burst), gate, l.Name)
	}
	emit(RateKeys, float64(l.Keys), gate, l.Name)
	emit(RateKeysMost, float64(l.MaxKeys), gate, l.Name)
	emit(RateOverflow, float64(l.Overflow), gate, l.Name)
}

// emitStores shows each store once: limiters of one name share one ceiling, and one
// limiter may serve several gates.
func emitStores(emit Emit, stores []ratelimit.StoreStats) {
	var seen []string
	for _, s := range stores {
		if slices.Contains(seen, s.Name) {
			continue
		}
		seen = append(seen, s.Name)
		emit(StoreDegraded, oneIf(s.Degraded), s.Name)
		emit(StorePeers, float64(s.Peers), s.Name)
		emit(StoreRate, perSecond(s.Rate), s.Name, "shared")
		emit(StoreRate, perSecond(s.ShareRate), s.Name, "share")
		emit(StoreKeys, float64(s.Keys-s.AwayKeys), s.Name, "shared")
		emit(StoreKeys, float64(s.AwayKeys), s.Name, "away")
		for _, c := range s.Calls {
			emit(StoreCalls, float64(c.Count), s.Name, c.Result)
		}
		emit(StoreSeconds, s.CallTime.Seconds(), s.Name)
		emit(StoreWasted, float64(s.Wasted), s.Name)
		emit(StoreChanges, float64(s.Changes), s.Name)
	}
}

// addGate makes g the sum of two gates of one name.
func addGate(g *admission.Stats, other admission.Stats) {
	g.Draining = g.Draining || other.Draining
	g.Streams += other.Streams
	for l := range g.Shadowed {
		for r := range g.Shadowed[l] {
			g.Shadowed[l][r] += other.Shadowed[l][r]
		}
	}
	for _, p := range other.Pools {
		at := slices.IndexFunc(g.Pools, func(known admission.PoolStats) bool { return known.Name == p.Name })
		if at < 0 {
			g.Pools = append(g.Pools, p)
			continue
		}
		addPool(&g.Pools[at], p)
	}
	addRoutes(g, other.Routes)
	g.Served, g.Refused = addCallers(g.Served, other.Served), addCallers(g.Refused, other.Refused)
	g.Limited, g.Busiest = addCallers(g.Limited, other.Limited), addCallers(g.Busiest, other.Busiest)
	for _, l := range other.Limits {
		at := slices.IndexFunc(g.Limits, func(known admission.LimitStats) bool { return known.Name == l.Name })
		if at < 0 {
			g.Limits = append(g.Limits, l)
			continue
		}
		g.Limits[at].Add(l.Stats)
	}
}

func addRoutes(g *admission.Stats, others []admission.RouteStats) {
	g.Routes = slices.Clone(g.Routes)
	for _, r := range others {
		at := slices.IndexFunc(g.Routes, func(known admission.RouteStats) bool { return known.Pattern == r.Pattern })
		if at < 0 {
			g.Routes = append(g.Routes, r)
			continue
		}
		sum := &g.Routes[at]
		sum.Held += r.Held
		for l := range r.Visits {
			for why, n := range r.Visits[l] {
				sum.Visits[l][why] += n
			}
		}
		for o, n := range r.Outcomes {
			sum.Outcomes[o] += n
		}
	}
}

func addPool(p *admission.PoolStats, other admission.PoolStats) {
	p.Limit += other.Limit
	p.Least += other.Least
	p.Most += other.Most
	p.InFlight += other.InFlight
	p.Bound += other.Bound
	p.DrainRate += other.DrainRate
	p.Estimated += other.Estimated
	p.EstimateOff += other.EstimateOff
	p.Oldest = max(p.Oldest, other.Oldest)
	p.Service = max(p.Service, other.Service)
	for l := range p.Waiting {
		p.Waiting[l] += other.Waiting[l]
		p.WaitingBytes[l] += other.WaitingBytes[l]
		p.SlotTime[l] += other.SlotTime[l]
	}
	for c := range p.Moves {
		p.Moves[c] += other.Moves[c]
	}
	if p.Cause == shed.CauseNone {
		p.Cause = other.Cause
	}
}

// perSecond shows a rate without a limit as infinite.
func perSecond(l rate.Limit) float64 {
	if l >= rate.Inf {
		return math.Inf(1)
	}
	return float64(l)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
