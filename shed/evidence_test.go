package shed

import (
	"testing"
	"time"
)

// A trial ends when its effect stands out from chance: 60 samples of usual work, four
// times as many of work that varies twice as much, and 20 where the effect is large.
func TestATrialEndsWhenItsEffectStandsOut(t *testing.T) {
	for name, c := range map[string]struct {
		kind  Cause
		n     int
		rate  float64
		vary  float64
		tells bool
	}{
		"a clear loss":             {CauseSaturated, 20, 70, usual, true},
		"too few for any":          {CauseSaturated, 19, 70, usual, false},
		"a loss by chance":         {CauseSaturated, 20, 90, usual, false},
		"by chance of mixed work":  {CauseSaturated, 20, 60, 1.4, false},
		"no loss, enough":          {CauseSaturated, 60, 100, usual, true},
		"no loss, not yet":         {CauseSaturated, 59, 100, usual, false},
		"work that varies":         {CauseSaturated, 239, 100, widest, false},
		"work that varies, enough": {CauseSaturated, 240, 100, widest, true},
		"clearly nothing gained":   {CauseGrow, 30, 100, usual, true},
		"clearly all gained":       {CauseGrow, 20, 240, usual, true},
		"gained by chance":         {CauseGrow, 20, 170, usual, false},
		"half of it, enough":       {CauseGrow, 60, 150, usual, true},
		"no trial, half as many":   {CauseNone, 30, 100, usual, true},
		"no trial, fewer":          {CauseNone, 29, 100, usual, false},
	} {
		climb := newTestClimb(32)
		climb.capacity, climb.vary = 100, c.vary
		climb.trial = trial{c.kind, 16, full(16, 100, 160*tms)}
		if got := climb.tells(c.n, c.rate); got != c.tells {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A refused trial is repeated after one second, two, four, and eight at most, by half the
// step, and not within ten latencies.
func TestRefusedTrialsBecomeRareAndSmall(t *testing.T) {
	p := newTestClimb(8).more
	for i, c := range []struct {
		latency, after time.Duration
		stride         float64
	}{
		{0, time.Second, p.first / 2}, {0, 2 * time.Second, p.first / 4}, {0, 4 * time.Second, p.least},
		{0, 8 * time.Second, p.least}, {0, 8 * time.Second, p.least}, {3 * time.Second, 30 * time.Second, p.least},
	} {
		p.fail(time.Minute, c.latency)
		if got := p.after - time.Minute; got != c.after || p.stride != max(c.stride, p.least) {
			t.Errorf("refusal %d: again after %v by %.2f, want %v by %.2f", i+1, got, p.stride, c.after, c.stride)
		}
	}
	if p.succeed(); p.wait != shortWait || p.stride != 1.5*p.least {
		t.Errorf("after a trial that was kept: %v, %.2f", p.wait, p.stride)
	}
}

// Work that was let in before the limit moved says nothing about the latency under it.
func TestLatencyIsThatOfWorkUnderTheLimitInForce(t *testing.T) {
	l := newLine(Throughput{}, 1, tms).law
	start := time.Unix(1e9, 0)
	l.Note(start, Load{InFlight: 8})
	l.changed = time.Second
	l.Done(start.Add(1100*tms), Load{InFlight: 8}, Sample{Admitted: start.Add(900 * tms)})
	if l.win.fresh != 0 || l.win.served != 1 {
		t.Errorf("%d of %d count though let in before", l.win.fresh, l.win.served)
	}
	l.Done(start.Add(1150*tms), Load{InFlight: 8}, Sample{Admitted: start.Add(1000 * tms)})
	if l.win.fresh != 1 {
		t.Errorf("%d count, want the one let in since", l.win.fresh)
	}
}

// The brake lets go once the ends since it went on allow the whole limit.
func TestTheBrakeLetsGo(t *testing.T) {
	b := brake{on: true, from: 0, count: 2, limit: 4}
	if b.check(time.Second, 8, 32, 500*tms, tms) || !b.on || b.limit != 1 {
		t.Errorf("on %v at %d, want on at 1: three ends a second, half a second each", b.on, b.limit)
	}
	for range 80 {
		b.end(1200 * tms)
	}
	if !b.check(1200*tms, 8, 32, 500*tms, tms) || b.on {
		t.Error("on though 83 ends in 1.2 s allow 34")
	}
}

// The time that work may be in flight is two thirds of what its deadline leaves, or R0
// where that is more, unless most of the work misses its deadline then.
func TestTheBudgetIsOfUse(t *testing.T) {
	c := newTestClimb(8)
	c.low = 900 * tms
	for _, s := range []struct {
		r    reading
		want time.Duration
	}{
		{reading{served: 9, timedOut: 1}, 0},
		{reading{served: 9, timedOut: 1, allowed: 3 * time.Second}, 2 * time.Second},
		{reading{served: 9, timedOut: 1, allowed: 600 * tms}, 900 * tms},
		{reading{served: 1, timedOut: 9, allowed: 600 * tms}, 400 * tms},
	} {
		if got := c.allowance(s.r); got != s.want {
			t.Errorf("%v with %d of %d late: %v, want %v", s.r.allowed, s.r.timedOut, s.r.ended(), got, s.want)
		}
	}
}

// No cut goes below what the flow needs at the lowest latency there was.
func TestACutLeavesWhatTheFlowNeeds(t *testing.T) {
	walk(t, newTestClimb(64), []at{
		{1, full(10, 20, 500*tms).with(func(r *reading) { r.binding, r.allowed = 0, 600*tms }), 64, CauseNone},
		{2, full(64, 60, 1066*tms).with(func(r *reading) { r.allowed = 600 * tms }), 33, CauseLatency},
	})
}

// Where the brake has shown that less concurrency is no faster, work takes that long.
func TestABrakeThatGainsNothingRaisesR0(t *testing.T) {
	c := newTestClimb(64)
	c.step(time.Second, full(10, 100, 100*tms).with(func(r *reading) { r.binding = 0 }))
	c.step(2*time.Second, full(64, 80, 800*tms).with(func(r *reading) { r.binding = 0 }))
	if c.low != 100*tms {
		t.Fatalf("R0 is %v, want the lowest there was", c.low)
	}
	c.step(3*time.Second, full(20, 25, 790*tms).with(func(r *reading) { r.braked = true }))
	if c.low != 790*tms || c.service != 790*tms {
		t.Errorf("R0 is %v and %v, want 790ms", c.low, c.service)
	}
}

// Chance does not raise R0: a loss far smaller than the cut leaves it as it was.
func TestR0IsRaisedOnCertaintyAlone(t *testing.T) {
	for name, c := range map[string]struct {
		served int
		want   time.Duration
	}{"a small loss": {93, 300 * tms}, "a loss of the whole": {85, 430 * tms}} {
		climb := newClimb(bounds{min: 1, max: 32, initial: 32}, defaultTarget)
		walk(t, &climb, []at{
			{1, full(32, 100, 320*tms), 27, CauseSaturated},
			{2, full(27, 84, 300*tms), 32, CauseUndo},
			{12, full(32, 100, 450*tms), 28, CauseSaturated},
			{13, full(28, c.served, 430*tms), 32, CauseUndo},
		})
		if climb.service != c.want {
			t.Errorf("%s: R0 is %v, want %v", name, climb.service, c.want)
		}
	}
}

// After twenty seconds R0 is put to the test though latency stays near it.
func TestR0IsPutToTheTest(t *testing.T) {
	c := newClimb(bounds{min: 1, max: 33, initial: 32}, defaultTarget)
	walk(t, &c, []at{
		{1, full(32, 100, 320*tms), 27, CauseSaturated},
		{2, full(27, 84, 300*tms), 32, CauseUndo},
		{3, full(32, 100, 330*tms), 33, CauseGrow},
		{21, full(33, 100, 330*tms), 33, CauseNone},
		{23, full(33, 100, 330*tms), 29, CauseSaturated},
	})
}

// A throughput that jumps is another backend: nothing that was learned holds.
func TestAnotherBackendIsLearnedAnew(t *testing.T) {
	c := newTestClimb(32)
	walk(t, c, []at{
		{1, full(32, 100, 320*tms), 27, CauseSaturated},
		{2, full(27, 84, 300*tms), 32, CauseUndo},
		{3, full(32, 300, 106*tms), 64, CauseGrow},
	})
	if c.service != 0 {
		t.Errorf("R0 is %v of the backend before", c.service)
	}
}

// What a trial found of the capacity is kept, though the trial is not.
func TestTrialsTeachTheCapacity(t *testing.T) {
	c := newTestClimb(32)
	walk(t, c, []at{{1, full(32, 100, 320*tms), 27, CauseSaturated}, {2, full(27, 110, 300*tms), 21, CauseThrash}})
	if c.capacity < 105 || c.capacity > 110 {
		t.Errorf("less gained: %.0f/s, want between 100 and 110", c.capacity)
	}
	c = newTestClimb(16)
	c.service = 100 * tms
	walk(t, c, []at{
		{1, full(16, 160, 110*tms), 18, CauseGrow},
		{2, full(18, 160, 112*tms), 36, CauseGrow},
		{3, full(36, 200, 180*tms), 18, CauseSaturated}, // from 21 = 1.1 · X · R0, not from 18
	})
}

// The work that holds the slots is replaced in R·(1 + v²): with pieces of 10 ms beside a
// few of a second, a trial does not end before those of a second have had their effect, or
// half a second.
func TestATrialSpansARoundOfTheWorkThatHoldsTheSlots(t *testing.T) {
	l := newLine(Throughput{}, 1, tms).law
	c := &l.climb
	c.latency, c.capacity, c.trial = 100*tms, 10000, trial{CauseSaturated, 20, full(20, 10000, 2*tms)}
	for _, s := range []struct {
		vary  float64
		round time.Duration
	}{{0.1, 100 * tms}, {usual, 100 * tms}, {1.5, 313 * tms}, {4, 500 * tms}} {
		c.vary = s.vary
		if got := c.round().Round(tms); got != s.round {
			t.Errorf("spread %v: %v, want %v", s.vary, got, s.round)
		}
		for length, want := range map[time.Duration]bool{s.round - 2*tms: false, s.round + 2*tms: true} {
			l.win.served = int(10000 * length.Seconds())
			if got := l.closes(length); got != want {
				t.Errorf("spread %v: closes after %v: %v", s.vary, length, got)
			}
		}
	}
}
