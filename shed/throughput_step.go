package shed

import (
	"math"
	"time"
)

// climb is the search for the limit: what it was, what was tried, what came of it.
type climb struct {
	bounds
	promise time.Duration
	limit   int
	latency time.Duration // of the last window
	base    reading       // before the trial under way; zero: none
	from    int           // limit before the trial; 0: no trial
}

func newClimb(b bounds, promise time.Duration) climb {
	return climb{bounds: b, promise: promise, limit: b.initial}
}

// step takes one window's reading and moves the limit, or not.
func (c *climb) step(r reading) Cause {
	if r.latency > 0 {
		c.latency = r.latency
	}
	if r.inFlight <= 0 {
		c.from = 0
		return CauseNone
	}
	if r.served+r.timedOut == 0 {
		return c.move(c.limit/2, CauseStalled)
	}
	if most := r.ends * c.budget(r).Seconds(); r.inFlight > most {
		return c.move(int(math.Ceil(most)), CauseLatency)
	}
	if r.binding < 0.3 {
		c.from = 0
		return CauseNone
	}
	if c.from == 0 {
		c.base, c.from = r, c.limit
		return c.move(c.limit+max(1, c.limit/2), CauseGrow)
	}
	return c.judge(r)
}

// budget is how long work may stay in flight.
func (c *climb) budget(r reading) time.Duration {
	if r.allowed > 0 {
		return r.allowed * 2 / 3
	}
	return max(c.promise, 2*c.latency)
}

// judge ends a trial by what it bought.
func (c *climb) judge(r reading) Cause {
	e := elasticity(c.base, r)
	from := c.from
	c.base, c.from = r, c.limit
	switch {
	case e > 0.5 && c.limit > from:
		return c.move(c.limit+max(1, c.limit/2), CauseGrow)
	case e > 0.5:
		return c.move(from, CauseUndo)
	case e < 0:
		return c.move(int(float64(c.limit)*0.7), CauseThrash)
	default:
		return c.move(int(float64(c.limit)*0.8), CauseSaturated)
	}
}

func (c *climb) move(limit int, cause Cause) Cause {
	limit = c.clamp(limit)
	if limit == c.limit {
		return CauseNone
	}
	c.limit = limit
	return cause
}

// elasticity is the share of a change of concurrency that came back as throughput.
func elasticity(a, b reading) float64 {
	dn := math.Log(b.inFlight / a.inFlight)
	if math.Abs(dn) < 0.02 || a.rate <= 0 || b.rate <= 0 {
		return 0.3
	}
	return math.Log(b.rate/a.rate) / dn
}
