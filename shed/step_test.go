package shed

import (
	"testing"
	"time"
)

// at is one step of a table: the reading of a window that closed t seconds after the
// start, and what the law makes of it.
type at struct {
	t     float64
	r     reading
	limit int
	cause Cause
}

// full is the reading of one second in which n pieces of work were served in the
// given latency, with every slot of the limit taken.
func full(limit, served int, latency time.Duration) reading {
	return reading{
		length: time.Second, inFlight: float64(limit), binding: 1, served: served, fresh: served,
		rate: float64(served), ends: float64(served), all: float64(served), latency: latency,
		peak: limit, room: 4 * limit,
	}
}

// with returns r changed by f.
func (r reading) with(f func(*reading)) reading { f(&r); return r }

func walk(t *testing.T, c *climb, steps []at) {
	t.Helper()
	for i, s := range steps {
		cause := c.step(time.Duration(s.t*float64(time.Second)), s.r)
		if c.limit != s.limit || cause != s.cause {
			t.Fatalf("step %d: limit %d for %v, want %d for %v", i, c.limit, cause, s.limit, s.cause)
		}
	}
}

func newTestClimb(initial int) *climb {
	c := newClimb(bounds{min: 1, max: 1000, initial: initial}, defaultTarget)
	return &c
}

// Ends that are no throughput are life: no window of them is a stall, however few
// there are, and a silence counts only from when ends are overdue at the known flow.
func TestOnlyOverdueEndsAreAStall(t *testing.T) {
	known := at{1, full(8, 800, 10*time.Millisecond).with(func(r *reading) { r.binding = 0 }), 16, CauseNone}
	others := func(binding float64, n int) reading {
		return reading{length: time.Second, inFlight: 16, binding: binding, other: n, all: float64(n)}
	}
	silent := func(inFlight, binding, seconds float64) reading {
		silence := time.Duration(seconds * float64(time.Second))
		return reading{length: time.Second, inFlight: inFlight, binding: binding, silence: silence}
	}
	for name, steps := range map[string][]at{
		"fast errors":          {known, {2, others(0, 1500), 16, CauseNone}, {3, others(0, 1500), 16, CauseNone}},
		"errors at the limit":  {known, {2, others(1, 200), 16, CauseNone}, {3, others(1, 200), 16, CauseNone}},
		"one error a window":   {known, {2, others(1, 1), 16, CauseNone}, {10, others(1, 1), 16, CauseNone}},
		"never an end":         {{1, silent(16, 1, 0), 16, CauseNone}, {9, silent(16, 1, 0), 16, CauseNone}},
		"slow work, room left": {known, {9, silent(3, 0, 8), 16, CauseNone}},
		"a stall":              {known, {2, silent(16, 1, 1), 8, CauseStalled}},
		"a stall that lasts": {known, {2, silent(16, 1, 1), 8, CauseStalled}, {3, silent(16, 1, 1.9), 8, CauseNone},
			{4, silent(16, 1, 3), 4, CauseStalled}, {5, silent(16, 1, 4), 4, CauseNone}, {8, silent(16, 1, 7), 2, CauseStalled}},
		"not yet overdue": {{1, full(16, 1, 16*time.Second).with(func(r *reading) { r.binding = 0 }), 16, CauseNone},
			{9, silent(16, 1, 7), 16, CauseNone}},
	} {
		t.Run(name, func(t *testing.T) { walk(t, newTestClimb(16), steps) })
	}
}

// Clients that leave after more than the known latency count as work that missed a
// deadline no longer than their stay, when they are a tenth of all ends and the limit
// holds work back. No cut goes below what the flow needs when nothing queues.
func TestClientsThatLeaveAreEvidence(t *testing.T) {
	known := at{1, full(8, 160, 100*time.Millisecond).with(func(r *reading) { r.binding = 0 }), 32, CauseNone}
	gone := func(served, left, other int, patience time.Duration) reading {
		r := full(32, served, 100*time.Millisecond)
		r.left, r.other, r.patience, r.all = left, left+other, patience, float64(served+left+other)
		return r
	}
	const second = time.Second
	for name, steps := range map[string][]at{
		"none is served":    {known, {2, gone(0, 20, 0, 1500*time.Millisecond), 17, CauseLatency}},
		"most are not":      {known, {2, gone(9, 20, 0, 1200*time.Millisecond), 21, CauseLatency}},
		"few are not":       {known, {2, gone(300, 20, 0, 1500*time.Millisecond), 64, CauseGrow}},
		"room is left":      {known, {2, gone(0, 20, 0, second).with(func(r *reading) { r.binding = 0 }), 32, CauseNone}},
		"most end normally": {known, {2, gone(0, 2, 100, second), 32, CauseNone}},
	} {
		t.Run(name, func(t *testing.T) { walk(t, newTestClimb(32), steps) })
	}
}

// A trial that meets a window without throughput is not judged by it.
func TestATrialIsNotJudgedByWindowsWithoutThroughput(t *testing.T) {
	walk(t, newTestClimb(16), []at{
		{1, full(16, 160, 100*time.Millisecond), 32, CauseGrow},
		{2, reading{length: time.Second, inFlight: 32, binding: 1, other: 40, all: 40}, 16, CauseUndo},
	})
}

// A trial upwards is kept when it buys throughput, a trial downwards when it costs none.
// What was lost tells how much is needed: 1.1 · N · loss, at a latency with no queue.
func TestTrialsAreJudgedByThroughput(t *testing.T) {
	const ms = time.Millisecond
	quick := full(16, 160, 100*ms)
	slow := full(32, 100, 320*ms) // above the target: less is tried first
	for name, steps := range map[string][]at{
		"more that buys as much":     {{1, quick, 32, CauseGrow}, {2, full(32, 320, 100*ms), 64, CauseGrow}},
		"more that buys nothing":     {{1, quick, 32, CauseGrow}, {2, full(32, 160, 200*ms), 14, CauseSaturated}},
		"more that buys a little":    {{1, quick, 32, CauseGrow}, {2, full(32, 200, 160*ms), 14, CauseSaturated}},
		"more that costs":            {{1, quick, 32, CauseGrow}, {2, full(32, 120, 260*ms), 14, CauseSaturated}},
		"more that did not fill":     {{1, quick, 32, CauseGrow}, {2, full(18, 180, 100*ms).with(func(r *reading) { r.binding = 0.1 }), 18, CauseUndo}},
		"more, as far as it fills":   {{1, quick.with(func(r *reading) { r.room = 17 }), 24, CauseGrow}},
		"less that costs nothing":    {{1, slow, 27, CauseSaturated}, {2, full(27, 100, 270*ms), 21, CauseSaturated}},
		"less that gains":            {{1, slow, 27, CauseSaturated}, {2, full(27, 115, 235*ms), 54, CauseGrow}},
		"less that costs as much":    {{1, slow, 27, CauseSaturated}, {2, full(27, 84, 320*ms), 32, CauseUndo}},
		"less when it holds no work": {{1, slow, 27, CauseSaturated}, {2, full(20, 84, 240*ms).with(func(r *reading) { r.binding = 0.1 }), 32, CauseUndo}},
	} {
		t.Run(name, func(t *testing.T) {
			first := 16
			if steps[0].r.latency > defaultTarget {
				first = 32
			}
			walk(t, newTestClimb(first), steps)
		})
	}
}

// What several trials downwards lose adds up: each is within the tolerance, together
// they are not.
func TestLossesOfSeveralTrialsAddUp(t *testing.T) {
	const ms = time.Millisecond
	walk(t, newTestClimb(32), []at{
		{1, full(32, 100, 320*ms), 27, CauseSaturated},
		{2, full(27, 97, 280*ms), 21, CauseSaturated},
		{3, full(21, 94, 223*ms), 25, CauseUndo},
	})
}

// The latency R0 at which a trial downwards lost throughput is that of work that does not
// queue. While latency stays near it, the limit follows the capacity by itself and no
// trial downwards is made.
func TestUnqueuedLatencyIsLearned(t *testing.T) {
	const ms = time.Millisecond
	c := newTestClimb(32)
	walk(t, c, []at{
		{1, full(32, 100, 320*ms), 27, CauseSaturated},
		{2, full(27, 84, 300*ms), 32, CauseUndo},
	})
	if c.service != 300*ms {
		t.Fatalf("R0 is %v, want 300ms", c.service)
	}
	walk(t, c, []at{
		{3, full(32, 105, 300*ms), 34, CauseGrow},
		{4, full(34, 115, 295*ms), 39, CauseGrow},
		{40, full(39, 130, 300*ms), 41, CauseGrow},
	})
	c.forget()
	if c.service != 0 {
		t.Error("R0 outlives what it was learned from")
	}
}

// Work in flight has to end before its deadline: N <= X * max(D/1.5, R0).
func TestTheClampFollowsDeadlines(t *testing.T) {
	const ms = time.Millisecond
	due := func(limit, served int, latency, allowed time.Duration) reading {
		return full(limit, served, latency).with(func(r *reading) { r.allowed = allowed })
	}
	before := at{1, due(64, 6400, 10*ms, 900*ms).with(func(r *reading) { r.binding = 0 }), 64, CauseNone}
	for name, steps := range map[string][]at{
		"within":            {before, {2, due(64, 200, 320*ms, 900*ms), 53, CauseSaturated}},
		"beyond":            {before, {2, due(64, 50, 1280*ms, 900*ms), 26, CauseLatency}},
		"no deadline":       {before, {2, full(64, 50, 1280*ms), 53, CauseSaturated}},
		"the cut was it":    {before, {2, due(64, 50, 1280*ms, 900*ms), 26, CauseLatency}, {3, due(26, 50, 520*ms, 900*ms), 26, CauseNone}},
		"it was not":        {before, {2, due(64, 50, 1280*ms, 900*ms), 26, CauseLatency}, {3, due(26, 22, 1180*ms, 900*ms), 59, CauseUndo}},
		"held by the brake": {before, {2, due(40, 200, 200*ms, 900*ms).with(func(r *reading) { r.braked = true }), 64, CauseNone}},
	} {
		t.Run(name, func(t *testing.T) { walk(t, newTestClimb(64), steps) })
	}
}

// A freeze waits for one round of what is in flight. It is lifted when the limit turns
// out to hold no work back, or when nothing can be measured.
func TestAFreezeIsLifted(t *testing.T) {
	const ms = time.Millisecond
	for name, r := range map[string]reading{
		"no work held back":  full(12, 120, 100*ms).with(func(r *reading) { r.binding = 0 }),
		"nothing to measure": {length: time.Second, inFlight: 12, binding: 1, other: 40, all: 40},
	} {
		c := newTestClimb(32)
		if cause := c.freeze(12); cause != CauseStalled || c.limit != 12 {
			t.Fatalf("%s: limit %d for %v", name, c.limit, cause)
		}
		walk(t, c, []at{{1, r, 32, CauseUndo}})
	}
	for name, inFlight := range map[string]int{"too few to tell": 7, "the limit is full already": 31} {
		c := newTestClimb(32)
		if cause := c.freeze(inFlight); cause != CauseNone || c.limit != 32 {
			t.Errorf("%s: limit %d for %v", name, c.limit, cause)
		}
	}
}

// No move leaves the bounds: not a stall, not a cut, not a raise.
func TestEveryMoveKeepsToTheBounds(t *testing.T) {
	const ms = time.Millisecond
	c := newClimb(bounds{min: 12, max: 40, initial: 32}, defaultTarget)
	silent := reading{length: time.Second, inFlight: 32, binding: 1, silence: 60 * time.Second}
	walk(t, &c, []at{
		{1, full(32, 320, 100*ms), 40, CauseGrow},
		{2, silent, 20, CauseStalled},
		{3, silent.with(func(r *reading) { r.silence *= 10 }), 12, CauseStalled},
		{4, silent.with(func(r *reading) { r.silence *= 100 }), 12, CauseNone},
		{5, full(12, 5, 2400*ms).with(func(r *reading) { r.allowed = 300 * ms }), 12, CauseNone},
	})
}
