package shed

import (
	"fmt"
	"time"
)

// Throughput is the default law: it finds the limit from what concurrency buys.
// While the limit binds it tries a little more and a little less, and keeps what
// served as much with the fewest slots; and it never holds more than can finish
// in time. Package shed's comment derives it.
//
// The zero value is usable. A negative field, or fields that contradict each
// other, are an error from New that names the field.
type Throughput struct {
	Min           int           // fewest slots; 0: 1
	Max           int           // most slots; 0: 1000
	Initial       int           // slots before there is evidence; 0: 32, or the nearest that Min and Max allow
	TargetLatency time.Duration // latency above which it first looks for less, not for more; 0: 250 ms
}

const (
	defaultMax     = 1000
	defaultInitial = 32
	defaultTarget  = 250 * time.Millisecond
)

// New validates the configuration and builds the law. The law is a plain struct:
// not safe for concurrent use, no goroutine, no allocation after New.
func (c Throughput) New() (Law, error) {
	b, err := newBounds("Throughput", c.Min, c.Max, c.Initial)
	if err != nil {
		return nil, err
	}
	if c.TargetLatency < 0 {
		return nil, fmt.Errorf("shed: Throughput.TargetLatency = %v: must not be negative", c.TargetLatency)
	}
	if c.TargetLatency == 0 {
		c.TargetLatency = defaultTarget
	}
	return newThroughput(b, c.TargetLatency), nil
}

const (
	shortestWindow = 100 * time.Millisecond
	longWindow     = time.Second     // may close with few samples
	longestWindow  = 8 * time.Second // closes with any
	fewSamples     = 5
)

// throughput is the law behind [Throughput].
type throughput struct {
	origin  time.Time
	changed time.Duration // when the limit last moved
	win     window
	climb   climb
	brake   brake
	armed   bool    // the brake may go on: not again before a window without it
	owed    float64 // ends that are missing
	limit   int     // in force: the climb's, or less while the brake is on
}

func newThroughput(b bounds, target time.Duration) *throughput {
	return &throughput{climb: newClimb(b, target), limit: b.initial}
}

func (l *throughput) Limit() int { return l.limit }

// Note takes a change of load.
func (l *throughput) Note(now time.Time, load Load) Step {
	t := l.offset(now)
	l.owe(t)
	l.win.advance(t, l.limit)
	l.win.load = load
	return l.decide(t)
}

// Done takes one finished piece of work.
func (l *throughput) Done(now time.Time, load Load, s Sample) Step {
	t := l.offset(now)
	l.owe(t)
	l.win.advance(t, l.limit)
	l.win.load = load
	l.brake.end(t)
	l.owed = max(l.owed-1, 0)
	if t > l.win.open {
		l.win.count(now, s, s.Admitted.Sub(l.origin) >= l.changed, l.climb.low*3/2)
	}
	return l.decide(t)
}

// owe adds the ends that should have come since the latest event if work took twice
// as long as it is known to. The sum, less the ends that did come and never below
// zero (Page's CUSUM), is near zero however irregular the work, until it has slowed.
func (l *throughput) owe(t time.Duration) {
	if l.win.load.InFlight == 0 {
		l.brake.rest(t)
	} else if usual := l.usual(); usual > 0 {
		l.owed = min(l.owed+float64(l.win.load.InFlight)*float64(t-l.win.last)/float64(2*usual), 2*overdue)
	}
}

// usual is how long work is known to hold its slot; 0: not known.
func (l *throughput) usual() time.Duration { return max(l.climb.latency, l.climb.turn) }

// offset turns now into a duration since the first event. Time that runs backwards
// stands still.
func (l *throughput) offset(now time.Time) time.Duration {
	if l.origin.IsZero() {
		l.origin = now
	}
	return max(now.Sub(l.origin), l.win.last)
}

// decide closes the window when it says enough, or brakes when that would be too
// late, and says what that did to the limit.
func (l *throughput) decide(t time.Duration) Step {
	before, cause := l.limit, CauseNone
	// A round that began together owes half of itself at its end. Without deadlines a
	// surplus harms no one, and a freeze might.
	if l.climb.budget > 0 && l.owed > max(overdue, float64(l.win.load.InFlight)/2) {
		if cause = l.climb.freeze(l.win.load.InFlight); cause != CauseNone {
			l.owed, l.brake.on, l.armed = 0, false, false
			l.win.restart(t)
		}
	}
	if cause != CauseNone {
	} else if l.closes(t - l.win.open) {
		cause = l.close(t)
	} else if l.armed && l.climb.budget > 0 && l.brake.check(t, l.win.load.InFlight, l.climb.limit, l.climb.brakeAt(), l.climb.latency) {
		l.climb.trial = trial{}
		l.win.restart(t)
	}
	l.limit = l.climb.limit
	if l.brake.on {
		l.limit = max(min(l.limit, l.brake.limit), l.climb.min)
	}
	if l.limit == before {
		return Step{}
	}
	l.changed = t
	if cause == CauseNone {
		cause = CauseUndo
		if l.limit < before {
			cause = CauseLatency
		}
	}
	return Step{Limit: l.limit, Cause: cause}
}

// closes reports whether a window of this length says enough: the samples that the
// climb needs; or, unless a trial hangs on it, a few of them over a long time; or ten
// latencies without them. A silence is looked at sooner.
func (l *throughput) closes(length time.Duration) bool {
	c := &l.climb
	urgent := c.trial.kind == CauseGrow || c.frozen > 0 && c.capacity == 0 // a queue grows meanwhile
	if length < shortestWindow && !(urgent && length >= shortestWindow/2) {
		return false
	}
	n := l.win.served + l.win.timedOut
	if c.trial.kind != CauseNone && n > 0 && length < c.round() { // ends come in rounds: it has to see a whole one
		return false
	}
	switch {
	case l.win.left >= max(n, leastSamples):
		return true
	case c.frozen > 0 && c.capacity == 0 && (n >= leastSamples || n == 0 && l.win.other >= fewSamples):
		return true
	case n >= leastSamples && c.tells(n, float64(l.win.served)/length.Seconds()):
		return true
	case n >= fewSamples && c.trial.kind == CauseNone:
		return length >= max(longWindow, 2*c.latency)
	case n == 0:
		return length >= min(max(longWindow, 2*c.latency), longestWindow)
	}
	return length >= max(longestWindow, 10*c.latency)
}

// close takes the step that the window gives rise to, and opens the next.
func (l *throughput) close(t time.Duration) Cause {
	before := l.climb.limit
	r := l.win.read()
	r.braked, l.brake.on = l.brake.on, false
	l.armed = !r.braked
	r.silence = l.brake.silence(t)
	r.stalled = r.silence.Seconds()*r.all > overdue && r.silence > l.climb.latency
	cause := l.climb.step(t, r)
	l.win.restart(t)
	if l.climb.trial.kind != CauseNone || 10*l.climb.limit < 9*before {
		l.win.open = t + l.climb.round()
	}
	return cause
}

// Resume starts from the number that another law of the kind had in force, as far
// as the bounds allow.
func (l *throughput) Resume(limit int) {
	l.climb.limit = l.climb.clamp(limit)
	l.limit = l.climb.limit
}

// Bounds are the climb's: the brake keeps to the same floor.
func (l *throughput) Bounds() (least, most int) { return l.climb.Bounds() }
