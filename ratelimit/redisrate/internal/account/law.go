package account

import (
	"math"
	"time"
)

// Law holds the constants of leasing; see the package comment for the symbols.
type Law struct {
	Tau   time.Duration // lease interval
	Ahead time.Duration // how far ahead of the rate slots are handed out beside a near store
	Trip  time.Duration // longest time between a grant and its arrival
}

// View is what a limiter knows of its surroundings.
type View struct {
	Peers int           // processes that share the ceiling; 0 if not known
	Trip  time.Duration // measured round trip to the store; 0 if not known
}

// maxCallRate is how many processes' pauses one key carries a second: what a process waits
// after a dry bucket grows with the fleet, so that denials alone cannot flood a server. The
// interval does not: leases for longer than the way takes lie idle at most processes, count
// as out, and keep the bucket from refilling.
const maxCallRate = 2000

// perishTaus is the life of a slot after its maturity, in intervals: one costs
// 13 % of utilisation when load is skewed, four costs nothing measurable.
const perishTaus = 4

// minLease is the smallest lease worth having.
const minLease = 2

// terms are the law applied to a limit in force and a number of processes.
type terms struct {
	Leasing bool
	Q       int           // lease size
	most    int           // lease size of a process that is alone in its hurry
	Reserve int           // slots handed out ahead of the rate, all together
	Tau     time.Duration // interval at this distance
	calm    time.Duration // twice the pause after a dry bucket
	perish  time.Duration // life of a slot after its maturity
	life    time.Duration // after a grant, until all of its slots have perished
	trip    time.Duration // round trip that the lease has to bridge
}

// outOfBurst is the part of the burst that may be out as slots. The bucket does not
// fill beside slots not reported spent, so with more it would run dry.
const outOfBurst = 0.75

// Terms computes D = min(R·(ahead + round trip), ¾B) and q = ⌊D/N⌋: what a far
// store costs is lead time. With fewer than minLease slots per lease a call per
// admission is the better bargain. D does not depend on N, so a process that does
// not know its peers yet (0) takes single slots within it.
func (w Law) Terms(rate float64, burst int, v View) terms {
	n := float64(max(1, v.Peers))
	t := terms{Tau: w.Tau + v.Trip, trip: v.Trip}
	t.calm = max(t.Tau, time.Duration(n/maxCallRate*float64(time.Second)))
	t.perish = perishTaus * t.Tau
	ahead := func(lead time.Duration) float64 { return min(rate*lead.Seconds(), float64(burst)*outOfBurst) }
	if ahead(w.Ahead)/n < minLease { // whatever the round trip, which changes
		return t
	}
	lead := w.Ahead + v.Trip
	reserve := ahead(lead)
	t.Leasing = true
	t.Reserve = int(reserve)
	t.Q = int(reserve / n)
	t.most = max(t.Q, t.Reserve/2)
	t.life = t.perish + lead + w.Trip
	if v.Peers == 0 {
		t.Q, t.most = 1, 1
	}
	return t
}

// seconds converts, rounding up: the wait advised is the wait needed. What does not fit is
// the longest there is.
func seconds(s float64) time.Duration {
	ns := math.Ceil(s * float64(time.Second))
	if ns >= math.MaxInt64/2 {
		return math.MaxInt64 / 2
	}
	return time.Duration(max(0, ns))
}

// demand estimates what a key is asked for in this process: tokens in the last
// interval, with an exponential window.
type demand struct {
	asked int // since last
	level float64
	last  time.Duration
}

// more says whether another is expected within tau: a cheap look at the same.
func (d *demand) more(tau, t time.Duration) bool {
	return d.level >= 1 || float64(d.asked)*float64(tau) >= float64(max(tau, t-d.last))
}

// per returns the tokens expected in the next tau.
func (d *demand) per(tau, t time.Duration) float64 {
	x := float64(max(1, t-d.last)) / float64(tau)
	fade := math.Exp(-x)
	d.level = d.level*fade + float64(d.asked)*-math.Expm1(-x)/x
	d.asked, d.last = 0, t
	return d.level
}
