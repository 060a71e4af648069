package shed

import (
	"math"
	"time"
)

// try starts the next trial that is due.
func (c *climb) try(t time.Duration, r reading) Cause {
	more := t >= c.more.after && c.limit < c.max
	less := t >= c.less.after && c.limit > c.min && (c.queues(1.25) || t-c.since > stale)
	if more && (r.latency <= c.target || !less || c.frozen > 0) {
		if cause := c.tryMore(r); cause != CauseNone {
			return cause
		}
	}
	if less {
		return c.tryLess(r)
	}
	return CauseNone
}

// queues reports whether latency is more than the given multiple of what work takes
// when nothing queues, as far as that is known.
func (c *climb) queues(multiple float64) bool {
	return c.service == 0 || float64(c.latency) > multiple*float64(c.service)
}

func (c *climb) tryMore(r reading) Cause {
	limit := min(int(math.Ceil(float64(c.limit)*math.Exp(c.more.stride))), c.highest(r))
	most := c.within()
	if c.queues(1.05) {
		limit = min(limit, most)
	} else { // the flow is what it is because there is so little in flight
		limit = min(limit, max(most, c.limit*9/8+1))
	}
	if limit <= c.limit {
		return CauseNone
	}
	c.trial = trial{CauseGrow, c.limit, r}
	return c.move(limit, CauseGrow)
}

// highest is how far the limit may be raised: to what is there to fill it at once, or a
// little beyond what was ever in use.
func (c *climb) highest(r reading) int {
	return max(r.room, int(unfilled*float64(c.used)))
}

func (c *climb) tryLess(r reading) Cause {
	c.trial = trial{CauseSaturated, c.limit, r}
	return c.move(min(int(math.Ceil(float64(c.limit)*math.Exp(-c.less.stride))), c.limit-1), CauseSaturated)
}

// judgeMore ends a trial upwards: keep it when it bought throughput.
func (c *climb) judgeMore(t time.Duration, r reading) Cause {
	tr := c.trial
	c.trial = trial{}
	if e := elasticity(tr.base.inFlight, c.capacity, r.inFlight, r.rate); e >= worthwhile {
		c.capacity = r.rate
		c.unqueued(t, tr.base.latency, e > 0.8)
		c.more.succeed()
		return c.try(t, r)
	}
	c.more.fail(t, r.latency)
	c.capacity, _ = c.blend(c.capacity, r.rate, r.ended())
	c.limit = max(tr.from, min(c.knee(), c.limit))
	if t >= c.less.after && c.limit > c.min && c.queues(1.25) {
		return c.tryLess(tr.base)
	}
	return CauseSaturated
}

// judgeLess ends a trial downwards: keep it unless it cost throughput. If it did,
// nothing queued, and Little's law gives the limit that the capacity needs.
func (c *climb) judgeLess(t time.Duration, r reading) Cause {
	tr := c.trial
	c.trial = trial{}
	change := math.Log(r.rate / c.capacity)
	if change < -tolerance {
		c.less.fail(t, r.latency)
		needed := int(math.Round(headroom * r.inFlight * math.Exp(-change)))
		c.unqueued(t, r.latency, elasticity(tr.base.inFlight, c.capacity, r.inFlight, r.rate) > worthwhile)
		return c.move(min(max(needed, c.limit+1), tr.from), CauseUndo)
	}
	if r.rate > c.capacity { // else what several trials lose adds up, and is noticed
		c.capacity, _ = c.blend(c.capacity, r.rate, r.ended())
	}
	c.less.succeed()
	cause := c.try(t, r)
	if change > tolerance && cause == CauseSaturated {
		cause = CauseThrash
	}
	return cause
}

// unqueued takes a latency at which nothing queued. Without certainty it only
// lowers what was known, so that chance cannot raise it step by step.
func (c *climb) unqueued(t, latency time.Duration, certain bool) {
	if !certain && c.service > 0 && latency > c.service {
		return
	}
	c.service, c.since = latency, t
	if certain {
		c.low = max(c.low, latency)
	}
}

func (p *pace) succeed() {
	p.stride = min(1.5*p.stride, p.first)
	p.wait = shortWait
}

func (p *pace) fail(t, latency time.Duration) {
	p.stride = max(p.stride/2, p.least)
	p.after = t + max(p.wait, 10*latency)
	p.wait = min(2*p.wait, longWait)
}

func (c *climb) move(limit int, cause Cause) Cause {
	limit = c.clamp(limit)
	if limit == c.limit {
		return CauseNone
	}
	c.limit = limit
	return cause
}

// tells reports whether a window of n samples at the given rate is enough: for a
// trial, when its effect stands out from chance.
func (c *climb) tells(n int, rate float64) bool {
	if n < leastSamples {
		return false
	}
	spread := min(max(c.vary, usual), widest) / usual // the more work varies, the more samples it takes
	enough := int(3 * leastSamples * spread * spread)
	if c.trial.kind != CauseGrow && c.trial.kind != CauseSaturated || n >= enough {
		return n >= enough/2
	}
	change := math.Log(rate / c.capacity)
	if c.trial.kind == CauseSaturated { // only a loss is urgent
		return change < -tolerance-2*c.chance(n)
	}
	threshold := worthwhile * math.Log(float64(c.limit)/c.trial.base.inFlight)
	return change < threshold-2*c.chance(n) || change > threshold+3*c.chance(n)
}

// learn keeps the capacity as the mean of what was measured lately. When it has
// clearly changed, everything else that was known is void.
func (c *climb) learn(r reading) {
	capacity, same := c.blend(c.capacity, r.rate, r.ended())
	if !same {
		c.forget()
	}
	c.capacity = capacity
}

// blend follows a rate: it averages a reading of n samples in, unless that is so
// far off that it has to be another rate. A mean of nothing is the reading.
func (c *climb) blend(mean, reading float64, n int) (float64, bool) {
	if mean == 0 {
		return reading, true
	}
	if math.Abs(math.Log(reading/mean)) > newRegime+2*c.chance(n) {
		return reading, false
	}
	return mean + (reading-mean)*float64(n)/float64(n+memory), true
}

// chance is one standard deviation of the logarithm of a rate of n samples: in a
// system that is kept full, the spread of the work over the root of their number.
func (c *climb) chance(n int) float64 {
	return max(c.vary, usual) / math.Sqrt(float64(max(n, 1)))
}

// elasticity is the share of a change of concurrency, from n to m, that came back
// as a change of throughput, from x to y: Δln X / Δln N.
func elasticity(n, x, m, y float64) float64 {
	d := math.Log(m / n)
	if !(math.Abs(d) > 0.02) || !(x > 0 && y > 0) {
		return 0
	}
	return math.Log(y/x) / d
}
