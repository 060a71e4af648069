package shed

import (
	"testing"
	"time"
)

// line drives the whole law, event by event, with one kind of work that takes its time
// in a backend of so many workers, first come first served.
type line struct {
	law     *throughput
	now     time.Time
	width   int
	took    time.Duration
	allowed time.Duration
	flying  []time.Time // when each was let in, in order
	ends    []time.Time // when each of the first will end
	moves   []Step
}

func newLine(limit Throughput, width int, took time.Duration) *line {
	law, err := limit.New()
	if err != nil {
		panic(err)
	}
	return &line{law: law.(*throughput), now: time.Unix(1e9, 0), width: width, took: took}
}

func (l *line) load(waiting int) Load { return Load{InFlight: len(l.flying), Waiting: waiting} }

func (l *line) moved(s Step) {
	if s.Moved() {
		l.moves = append(l.moves, s)
	}
}

// start gives the workers what waits inside.
func (l *line) start() {
	for len(l.ends) < min(l.width, len(l.flying)) {
		l.ends = append(l.ends, l.now.Add(l.took))
	}
}

// run offers one request every gap for so long; what finds no slot waits or is lost.
func (l *line) run(gap, length time.Duration) {
	waiting := 0
	for next, end := l.now, l.now.Add(length); next.Before(end); next = next.Add(gap) {
		for len(l.ends) > 0 && !l.ends[0].After(next) {
			l.now = l.ends[0]
			s := Sample{Admitted: l.flying[0], Outcome: Served}
			if l.allowed > 0 {
				s.Deadline = s.Admitted.Add(l.allowed)
				if l.now.After(s.Deadline) {
					s.Outcome = TimedOut
				}
			}
			l.flying, l.ends = l.flying[1:], l.ends[1:]
			l.start()
			l.moved(l.law.Done(l.now, l.load(waiting), s))
			waiting = l.fill(waiting)
		}
		l.now = next
		waiting = l.fill(min(waiting+1, 100))
	}
}

// fill lets in what waits, as far as there are slots.
func (l *line) fill(waiting int) int {
	for waiting > 0 && len(l.flying) < l.law.Limit() {
		waiting--
		l.flying = append(l.flying, l.now)
		l.start()
		l.moved(l.law.Note(l.now, l.load(waiting)))
	}
	l.moved(l.law.Note(l.now, l.load(waiting)))
	return waiting
}

func (l *line) caused(c Cause) bool {
	for _, s := range l.moves {
		if s.Cause == c {
			return true
		}
	}
	return false
}

const tms = time.Millisecond

// A backend that slows down is not filled to the limit that was right before: the
// limit is frozen at what is in flight once eight ends are missing.
func TestASlowdownIsNotFilledToTheOldLimit(t *testing.T) {
	l := newLine(Throughput{}, 16, 4*tms)
	l.allowed = time.Second
	l.run(tms, 2*time.Second)
	if l.law.Limit() != 32 || len(l.moves) > 0 {
		t.Fatalf("healthy: limit %d, moves %v", l.law.Limit(), l.moves)
	}
	l.took = 200 * tms
	l.run(tms, 50*tms)
	if n := len(l.flying); n > 24 || !l.caused(CauseStalled) {
		t.Errorf("%d in flight after 50 ms of work that takes 200, moves %v", n, l.moves)
	}
	l.run(tms, 10*time.Second)
	if limit := l.law.Limit(); limit < 14 || limit > 24 {
		t.Errorf("limit %d for a pool of 16", limit)
	}
}

// When work slows down without a bottleneck, the limit is soon where it has to be.
func TestAFreezeDoesNotHoldBackWhatHasRoom(t *testing.T) {
	l := newLine(Throughput{}, 1000, 4*tms)
	l.allowed = time.Second
	l.run(tms, 2*time.Second)
	l.took = 100 * tms
	l.run(tms, 2*time.Second)
	if limit := l.law.Limit(); limit < 100 {
		t.Errorf("limit %d where 100 are needed, moves %v", limit, l.moves)
	}
}

// The brake goes on between two windows when the latest ends show that what is in
// flight cannot end in time, and holds the limit there until a window closes.
func TestTheBrakeHoldsWhatCannotEndInTime(t *testing.T) {
	l := newLine(Throughput{Initial: 64}, 20, 50*tms)
	l.allowed = 600 * tms
	l.run(3*tms, 5*time.Second)
	before := l.law.Limit()
	l.width = 2 // a tenth of the capacity, the work as long: no end is overdue at first
	l.run(3*tms, 400*tms)
	if !l.law.brake.on && !l.caused(CauseLatency) || l.law.Limit() > before/2 {
		t.Errorf("limit %d, was %d, moves %v", l.law.Limit(), before, l.moves)
	}
}

func TestBrakeTable(t *testing.T) {
	for name, c := range map[string]struct {
		gaps    []time.Duration // between ends, up to the check
		silent  time.Duration   // since the latest
		load    int
		limit   int
		budget  time.Duration
		latency time.Duration
		on      bool
		want    int
	}{
		"steady":             {repeat(16, 10*tms), 10 * tms, 10, 32, 500 * tms, tms, false, 0},
		"silent":             {repeat(16, 10*tms), 900 * tms, 30, 32, 300 * tms, tms, true, 1},
		"slower":             {repeat(16, 100*tms), 100 * tms, 30, 32, 300 * tms, tms, true, 9},
		"few in flight":      {repeat(16, 100*tms), 100 * tms, 3, 32, 300 * tms, tms, false, 0},
		"enough time":        {repeat(16, 100*tms), 100 * tms, 30, 32, 5 * time.Second, tms, false, 0},
		"after an idle time": {nil, 2 * time.Second, 0, 32, 300 * tms, tms, false, 0},
		"a round of its own": {repeat(16, tms), 60 * tms, 52, 60, 50 * tms, 100 * tms, false, 0},
		"no round any more":  {repeat(16, tms), 60 * tms, 52, 60, 50 * tms, 10 * tms, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var b brake
			at := time.Second
			b.rest(at)
			for _, g := range c.gaps {
				at += g
				b.end(at)
			}
			at += c.silent
			if c.load == 0 {
				b.rest(at)
			}
			if got := b.check(at, c.load, c.limit, c.budget, c.latency); got != c.on || c.on && b.limit != c.want {
				t.Errorf("on %v at %d, want %v at %d", got, b.limit, c.on, c.want)
			}
		})
	}
}

// After an idle time the first work is not measured against the last ends before it.
func TestABurstAfterAnIdleTimeIsNoStall(t *testing.T) {
	l := newLine(Throughput{}, 16, 20*tms)
	l.allowed = time.Second
	for range 5 {
		l.run(tms, time.Second)
		l.run(10*time.Second, 10*time.Second) // next to nothing
		if limit := l.law.Limit(); limit < 16 {
			t.Fatalf("limit %d for a pool of 16 after an idle time, moves %v", limit, l.moves)
		}
	}
}

// With nothing to learn the limit stays where it is, and never above what was in use.
func TestAnUnusedLimitDoesNotMove(t *testing.T) {
	l := newLine(Throughput{}, 1000, 5*tms)
	for range 200 { // bursts under the capacity, each at the limit for a moment
		l.run(tms/20, 5*tms)
		l.run(20*tms, 200*tms)
	}
	if limit := l.law.Limit(); limit > max(32, 3*l.law.climb.used/2) {
		t.Errorf("limit %d with %d in use at most, moves %v", limit, l.law.climb.used, l.moves)
	}
}

func repeat(n int, d time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}
