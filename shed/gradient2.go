package shed

import (
	"fmt"
	"time"
)

// Gradient2 multiplies the limit by the ratio of a long-run latency to the latest
// one, never by less than a half nor by more than one, and adds a small allowance
// for a queue: limit ← limit · clamp(Tolerance · long/short, ½, 1) + 4, smoothed.
//
// It cannot tell a backend that became slower from one that queues, and in a mild
// overload both latencies rise together and the allowance creeps up. The zero
// value is usable; a bad field is an error from New that names it.
//
// Source: Gradient2Limit of Netflix's concurrency-limits, with its constants: long
// run of 600 samples, smoothing 0.2.
type Gradient2 struct {
	Min       int     // fewest slots; 0: 1
	Max       int     // most slots; 0: 1000
	Initial   int     // slots before there is evidence; 0: 32, or the nearest that Min and Max allow
	Tolerance float64 // how much slower than the long run is no slower at all, at least 1; 0: 1.5
}

// New validates the configuration and builds the law.
func (c Gradient2) New() (Law, error) {
	b, err := newBounds("Gradient2", c.Min, c.Max, c.Initial)
	if err != nil {
		return nil, err
	}
	if c.Tolerance == 0 {
		c.Tolerance = 1.5
	}
	if !(c.Tolerance >= 1 && c.Tolerance <= 1000) {
		return nil, fmt.Errorf("shed: Gradient2.Tolerance = %v: must be at least 1", c.Tolerance)
	}
	return &gradient2{bounds: b, tolerance: c.Tolerance, limit: float64(b.initial)}, nil
}

type gradient2 struct {
	bounds
	tolerance float64
	limit     float64
	long      float64 // nanoseconds
	samples   int
}

const (
	gradient2Long      = 600 // samples
	gradient2Warmup    = 10  // samples that the long run is a plain mean of
	gradient2Queue     = 4
	gradient2Smoothing = 0.2
)

func (l *gradient2) Limit() int                { return int(l.limit) }
func (l *gradient2) Note(time.Time, Load) Step { return Step{} }

func (l *gradient2) Done(now time.Time, load Load, s Sample) Step {
	latency := float64(now.Sub(s.Admitted))
	if s.Outcome != Served && s.Outcome != TimedOut || latency <= 0 {
		return Step{}
	}
	l.remember(latency)
	before := l.Limit()
	// The finished one was in flight too when it was measured.
	next, cause := gradient2Step(l.limit, load.InFlight+1, latency, l.long, l.tolerance)
	l.limit = min(max(next, float64(l.min)), float64(l.max))
	return moved(before, l.Limit(), cause)
}

// remember moves the long run. When latency has fallen far below it, it falls
// faster, so that an outage is not remembered as the norm.
func (l *gradient2) remember(latency float64) {
	l.samples++
	if l.samples <= gradient2Warmup {
		l.long += (latency - l.long) / float64(l.samples)
	} else {
		l.long += (latency - l.long) * 2 / (gradient2Long + 1)
	}
	if l.long/latency > 2 {
		l.long *= 0.95
	}
}

// gradient2Step is the law: the next limit and why.
func gradient2Step(limit float64, inFlight int, short, long, tolerance float64) (float64, Cause) {
	if float64(inFlight) < limit/2 {
		return limit, CauseNone
	}
	gradient := min(max(tolerance*long/short, 0.5), 1)
	next := limit*gradient + gradient2Queue
	cause := CauseGrow
	if next < limit {
		cause = CauseLatency
	}
	return limit + (next-limit)*gradient2Smoothing, cause
}

// Resume starts from the number that another law of the kind had in force, as far
// as the bounds allow.
func (l *gradient2) Resume(limit int) { l.limit = float64(l.clamp(limit)) }
