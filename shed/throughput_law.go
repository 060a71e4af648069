package shed

import "time"

const (
	shortestWindow = 100 * time.Millisecond
	longestWindow  = time.Second
	enoughSamples  = 30
)

// throughput is the law behind [Throughput].
type throughput struct {
	origin  time.Time
	changed time.Duration // when the limit last moved
	win     window
	climb   climb
}

func newThroughput(b bounds, promise time.Duration) *throughput {
	return &throughput{climb: newClimb(b, promise)}
}

func (l *throughput) Limit() int { return l.climb.limit }

func (l *throughput) Note(now time.Time, load Load) Step {
	t := l.offset(now)
	l.win.advance(t, l.climb.limit)
	l.win.load = load
	return l.decide(t)
}

func (l *throughput) Done(now time.Time, load Load, s Sample) Step {
	t := l.offset(now)
	l.win.advance(t, l.climb.limit)
	l.win.load = load
	if t > l.win.open && s.Admitted.Sub(l.origin) >= l.changed {
		l.win.count(s)
	}
	return l.decide(t)
}

// offset turns now into a duration since the first event.
func (l *throughput) offset(now time.Time) time.Duration {
	if l.origin.IsZero() {
		l.origin = now
	}
	return max(now.Sub(l.origin), l.win.last)
}

// decide closes the window when it says enough, and takes a step.
func (l *throughput) decide(t time.Duration) Step {
	length := t - l.win.open
	if length < shortestWindow {
		return Step{}
	}
	if length < longestWindow && (l.win.served < enoughSamples || length < l.climb.latency) {
		return Step{}
	}
	before := l.climb.limit
	cause := l.climb.step(l.win.read())
	l.win.restart(t)
	if l.climb.limit == before {
		return Step{}
	}
	l.changed = t
	l.win.open = t + min(l.climb.latency, longestWindow)
	return Step{Limit: l.climb.limit, Cause: cause}
}
