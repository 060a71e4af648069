package redisrate

import (
	"math"
	"time"
)

// law holds the constants of leasing; see the package comment for the symbols.
type law struct {
	tau   time.Duration // lease interval
	ahead time.Duration // how far ahead of the rate slots are handed out beside a near store
	trip  time.Duration // longest time between a grant and its arrival
}

// view is what a limiter knows of its surroundings.
type view struct {
	peers int           // processes that share the ceiling; 0 if not known
	trip  time.Duration // measured round trip to the store; 0 if not known
}

// maxCallRate is how many instances' intervals one key carries a second: the
// interval grows with the fleet so that denials alone cannot flood a server.
const maxCallRate = 2000

// perishTaus is the life of a slot after its maturity, in intervals: one costs
// 13 % of utilisation when load is skewed, four costs nothing measurable.
const perishTaus = 4

// minLease is the smallest lease worth having.
const minLease = 2

// terms are the law applied to a limit in force and a number of processes.
type terms struct {
	leasing bool
	q       int           // lease size
	most    int           // lease size of a process that is alone in its hurry
	reserve int           // slots handed out ahead of the rate, all together
	tau     time.Duration // interval at this fleet size
	perish  time.Duration // life of a slot after its maturity
	life    time.Duration // after a grant, until all of its slots have perished
	trip    time.Duration // round trip that the lease has to bridge
}

// outOfBurst is the part of the burst that may be out as slots. The bucket does not
// fill beside slots it has not heard of again, so with more it would run dry.
const outOfBurst = 0.75

// terms computes D = min(R·(ahead + round trip), ¾B) and q = ⌊D/N⌋: what a far
// store costs is lead time. With fewer than minLease slots per lease a call per
// admission is the better bargain. D does not depend on N, so a process that does
// not know its peers yet (0) takes single slots within it.
func (w law) terms(rate float64, burst int, v view) terms {
	n := float64(max(1, v.peers))
	t := terms{tau: max(w.tau+v.trip, time.Duration(n/maxCallRate*float64(time.Second))), trip: v.trip}
	t.perish = perishTaus * t.tau
	ahead := func(lead time.Duration) float64 { return min(rate*lead.Seconds(), float64(burst)*outOfBurst) }
	if ahead(w.ahead)/n < minLease { // whatever the round trip, which changes
		return t
	}
	lead := w.ahead + v.trip
	reserve := ahead(lead)
	t.leasing = true
	t.reserve = int(reserve)
	t.q = int(reserve / n)
	t.most = max(t.q, t.reserve/2)
	t.life = t.perish + lead + w.trip
	if v.peers == 0 {
		t.q, t.most = 1, 1
	}
	return t
}

// seconds converts, rounding up: a wait told is a wait kept. What does not fit is
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
