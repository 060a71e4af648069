package shed

import (
	"fmt"
	"time"
)

// AIMD adds one slot for each round of work that went well with the limit in use,
// and multiplies the limit by Backoff when work misses its deadline, at most once
// a round. A round is as many pieces of work as there are slots.
//
// It is simple and safe, and it finds the limit only by doing harm: until
// deadlines are missed it sees no overload. The zero value is usable; a bad field
// is an error from New that names it.
//
// Source: Chiu and Jain, "Analysis of the Increase and Decrease Algorithms for
// Congestion Avoidance in Computer Networks", 1989; the backoff of 0.9 is that of
// Netflix's concurrency-limits.
type AIMD struct {
	Min     int     // fewest slots; 0: 1
	Max     int     // most slots; 0: 1000
	Initial int     // slots before there is evidence; 0: 32, or the nearest that Min and Max allow
	Backoff float64 // what is left of the limit after a miss, in (0, 1); 0: 0.9
}

// New validates the configuration and builds the law.
func (c AIMD) New() (Law, error) {
	b, err := newBounds("AIMD", c.Min, c.Max, c.Initial)
	if err != nil {
		return nil, err
	}
	if c.Backoff == 0 {
		c.Backoff = 0.9
	}
	if !(c.Backoff > 0 && c.Backoff < 1) {
		return nil, fmt.Errorf("shed: AIMD.Backoff = %v: must be between 0 and 1", c.Backoff)
	}
	return &aimd{bounds: b, backoff: c.Backoff, limit: float64(b.initial)}, nil
}

type aimd struct {
	bounds
	backoff float64
	limit   float64
	cut     time.Time // the latest decrease
}

func (l *aimd) Limit() int                { return int(l.limit) }
func (l *aimd) Note(time.Time, Load) Step { return Step{} }

// Done feeds one sample. Work admitted before the latest decrease says nothing
// about the limit it left behind.
func (l *aimd) Done(now time.Time, load Load, s Sample) Step {
	before := l.Limit()
	cause := CauseNone
	switch {
	case s.Outcome == TimedOut && !s.Admitted.Before(l.cut):
		l.cut = now
		l.limit, cause = l.limit*l.backoff, CauseErrors
	case s.Outcome == Served && 2*load.InFlight >= before:
		l.limit, cause = l.limit+1/l.limit, CauseGrow
	}
	l.limit = min(max(l.limit, float64(l.min)), float64(l.max))
	return moved(before, l.Limit(), cause)
}

// moved is the step from one limit to the next, the zero Step when they are equal.
func moved(before, after int, cause Cause) Step {
	if before == after {
		return Step{}
	}
	return Step{Limit: after, Cause: cause}
}

// Resume starts from the number that another law of the kind had in force, as far
// as the bounds allow.
func (l *aimd) Resume(limit int) { l.limit = float64(l.clamp(limit)) }
