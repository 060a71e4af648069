package shed

import (
	"math"
	"time"
)

// Vegas compares each latency with the lowest one seen and takes the difference
// for a queue below: queue = limit · (1 − lowest/latency). A short queue grows the
// limit, a long one shrinks it. The lowest latency is taken anew every 30 rounds.
//
// It cannot tell a backend that became slower from one that queues, one lucky
// sample pins the lowest latency, and taking it anew during an outage makes the
// outage the norm. The zero value is usable; a bad field is an error from New that
// names it.
//
// Source: Brakmo and Peterson, "TCP Vegas", 1995, with the constants of Netflix's
// concurrency-limits: α = 3·log₁₀ limit, β = 6·log₁₀ limit, step log₁₀ limit.
type Vegas struct {
	Min     int // fewest slots; 0: 1
	Max     int // most slots; 0: 1000
	Initial int // slots before there is evidence; 0: 32, or the nearest that Min and Max allow
}

// New validates the configuration and builds the law.
func (c Vegas) New() (Law, error) {
	b, err := newBounds("Vegas", c.Min, c.Max, c.Initial)
	if err != nil {
		return nil, err
	}
	return &vegas{bounds: b, limit: float64(b.initial)}, nil
}

type vegas struct {
	bounds
	limit   float64
	lowest  time.Duration
	samples int // since lowest was taken anew
}

const vegasRounds = 30

func (l *vegas) Limit() int                { return int(l.limit) }
func (l *vegas) Note(time.Time, Load) Step { return Step{} }

func (l *vegas) Done(now time.Time, load Load, s Sample) Step {
	latency := now.Sub(s.Admitted)
	if s.Outcome != Served && s.Outcome != TimedOut || latency <= 0 {
		return Step{}
	}
	l.samples++
	if l.lowest == 0 || latency < l.lowest || float64(l.samples) > vegasRounds*l.limit {
		l.lowest, l.samples = latency, 0
	}
	before := l.Limit()
	// The finished one was in flight too when it was measured.
	next, cause := vegasStep(l.limit, load.InFlight+1, latency, l.lowest, s.Outcome == TimedOut)
	l.limit = min(max(next, float64(l.min)), float64(l.max))
	return moved(before, l.Limit(), cause)
}

// vegasStep is the law: the next limit and why.
func vegasStep(limit float64, inFlight int, latency, lowest time.Duration, dropped bool) (float64, Cause) {
	unit := max(1, math.Log10(limit))
	queue := math.Ceil(limit * (1 - float64(lowest)/float64(latency)))
	switch {
	case dropped:
		return limit - unit, CauseErrors
	case 2*float64(inFlight) < limit:
		return limit, CauseNone
	case queue <= unit:
		return limit + 6*unit, CauseGrow
	case queue < 3*unit:
		return limit + unit, CauseGrow
	case queue > 6*unit:
		return limit - unit, CauseLatency
	default:
		return limit, CauseNone
	}
}

// Resume starts from the number that another law of the kind had in force, as far
// as the bounds allow.
func (l *vegas) Resume(limit int) { l.limit = float64(l.clamp(limit)) }
