package window

import (
	"fmt"
	"testing"
	"time"
)

// One request that comes with a clock ahead, or far back, neither holds its key until
// then nor gives it more: in every window the quota passes.
//
// Case LI-02: tried on the product
func TestAWrongClockDoesNotStopTheWindows(t *testing.T) {
	const quota = 10
	for _, length := range []time.Duration{time.Minute, time.Hour, day} {
		for _, off := range []time.Duration{24 * time.Hour, 10 * 365 * 24 * time.Hour, -24 * time.Hour, -365 * 24 * time.Hour} {
			for _, before := range []int{0, 4} {
				if before == 0 && off < 0 {
					continue // then those requests came before, as far as can be told
				}
				for _, wrong := range []int{1, 3} {
					t.Run(fmt.Sprint(length, " off by ", off, ", ", before, " before, ", wrong, " wrong"), func(t *testing.T) {
						tryWrongClock(t, quota, length, off, before, wrong)
					})
				}
			}
		}
	}
}

func tryWrongClock(t *testing.T, quota int, length, off time.Duration, before, wrong int) {
	l := PerKey(quota, length)
	now := midnight.Add(length / 3)
	used := 0
	ask := func(at time.Time) {
		if take(l, at, "a", 1).OK {
			used++
		}
	}
	for range before {
		ask(now)
	}
	for range wrong {
		ask(now.Add(off))
	}
	for range 2 * quota {
		ask(now)
	}
	if used != quota {
		t.Errorf("%d passed in the window with the wrong clock, want %d", used, quota)
	}
	d := take(l, now, "a", 1)
	if !take(l, now.Add(d.Wait), "a", 1).OK || take(l, now.Add(d.Wait), "a", 1).OK {
		t.Errorf("told to wait %v: want one to pass then", d.Wait)
	}
	for i := range 4 { // every other window: the estimate of the first still counts in the next
		used = 0
		now = midnight.Add(time.Duration(2*i+3)*length + length/3)
		for range 2 * quota {
			ask(now)
		}
		if used != quota {
			t.Errorf("window %d: %d passed, want %d", 2*i+3, used, quota)
		}
	}
}

// Two requests with different wrong clocks in a row do no more.
func TestTwoWrongClocksDoNotStopTheWindows(t *testing.T) {
	l := PerKey(10, time.Hour)
	for range 4 {
		take(l, midnight, "a", 1)
	}
	for _, off := range []time.Duration{24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		take(l, midnight.Add(off), "a", 1)
	}
	if d := take(l, midnight, "a", 1); !d.OK || d.Remaining != 3 {
		t.Errorf("got %+v, want 7 of 10 used", d)
	}
	if d := take(l, midnight, "b", 1); !d.OK || d.Remaining != 9 {
		t.Errorf("another key got %+v", d)
	}
}

// A grant of a clock that was ahead can be undone and charged when the clock is right.
func TestAGrantOfAWrongClockIsSettledInItsTime(t *testing.T) {
	l := PerKey(10, time.Hour)
	take(l, midnight, "a", 1)
	one := take(l, midnight.Add(day), "a", 2)
	two := take(l, midnight.Add(day), "a", 2)
	one.Undo(midnight)
	take(l, midnight, "b", 1)
	two.Adjust(midnight, 3)
	if d := take(l, midnight, "a", 1); d.Remaining != 3 {
		t.Errorf("got %+v, want 1 + 2 + 3 + 1 of 10 used", d)
	}
}

// Traffic with pauses longer than any clock is trusted for keeps its estimate.
func TestPausesKeepTheEstimate(t *testing.T) {
	l := PerKey(10, time.Hour)
	take(l, midnight.Add(59*time.Minute), "a", 10)
	if d := take(l, midnight.Add(66*time.Minute), "a", 2); d.OK {
		t.Errorf("got %+v, want nine tenths of the hour before to count", d)
	}
	for i := range 100 {
		take(l, midnight.Add(time.Duration(2+i)*time.Hour), "light", 1)
	}
	for i := range l.counts.local.shards {
		s := &l.counts.local.shards[i]
		if n := len(s.kept); n > maxKept || len(s.now) > 1 {
			t.Errorf("%d windows kept, %d keys", n, len(s.now))
		}
	}
}
