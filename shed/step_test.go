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

// Work whose client left after more than the known latency is evidence when most
// work ends so and the limit is what holds the rest back. It never cuts below what
// the flow needs when nothing queues.
func TestClientsThatLeaveAreEvidence(t *testing.T) {
	known := at{1, full(8, 160, 100*time.Millisecond).with(func(r *reading) { r.binding = 0 }), 32, CauseNone}
	gone := func(served, left, other int, patience time.Duration) reading {
		r := full(32, served, 100*time.Millisecond)
		r.left, r.other, r.patience, r.all = left, left+other, patience, float64(served+left+other)
		return r
	}
	for name, steps := range map[string][]at{
		"nobody is served":    {known, {2, gone(0, 20, 0, 1600*time.Millisecond), 22, CauseErrors}},
		"most are not":        {known, {2, gone(9, 20, 0, 1500*time.Millisecond), 29, CauseErrors}},
		"most are":            {known, {2, gone(200, 20, 0, 1500*time.Millisecond), 64, CauseGrow}},
		"most end otherwise":  {known, {2, gone(0, 20, 40, 1500*time.Millisecond), 32, CauseNone}},
		"room is left":        {known, {2, gone(0, 20, 0, 1500*time.Millisecond).with(func(r *reading) { r.binding = 0 }), 32, CauseNone}},
		"no less than needed": {known, {2, gone(0, 200, 0, 120*time.Millisecond), 20, CauseErrors}},
	} {
		t.Run(name, func(t *testing.T) { walk(t, newTestClimb(32), steps) })
	}
}

// A trial that meets a window without throughput is not judged by it.
func TestATrialIsNotJudgedByWindowsWithoutThroughput(t *testing.T) {
	c := newTestClimb(16)
	walk(t, c, []at{{1, full(16, 160, 100*time.Millisecond), 32, CauseGrow}})
	walk(t, c, []at{{2, reading{length: time.Second, inFlight: 32, binding: 1, other: 40, all: 40}, 16, CauseUndo}})
}
