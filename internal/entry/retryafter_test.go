package entry_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
)

func TestRetryAfterIsOneSecondOnAQuietDay(t *testing.T) {
	var c entry.RetryAfter
	now := time.Unix(1e9, 0)
	c.Admitted(now, priority.Normal)
	if got := c.Refused(now, priority.Normal, 0); got != time.Second {
		t.Errorf("got %v", got)
	}
}

func TestRetryAfterIsTheTimeToServeThoseSentAway(t *testing.T) {
	var c entry.RetryAfter
	now := time.Unix(1e9, 0)
	for range 10 { // ten seconds of 20 admissions and 100 refusals a second
		for range 20 {
			c.Admitted(now, priority.Batch)
		}
		for range 100 {
			c.Refused(now, priority.Batch, 0)
		}
		now = now.Add(time.Second)
	}
	// With v seconds each, 100·v callers are away (at most 10 s of them), and 20 a
	// second are served: 100·v/20 > v, so it grows to the whole window, 1,000/20.
	if got := c.Refused(now, priority.Batch, 0); got != 30*time.Second {
		t.Errorf("got %v, want the longest v", got)
	}
	if got := c.Refused(now, priority.High, 0); got != time.Second {
		t.Errorf("another level: %v", got)
	}
}

func TestRetryAfterForgetsWhoIsDueBack(t *testing.T) {
	var c entry.RetryAfter
	now := time.Unix(1e9, 0)
	for range 10 {
		c.Admitted(now, priority.Normal) // one a second in the window of the first second
	}
	for range 40 {
		c.Refused(now, priority.Normal, 0)
	}
	if got := c.Refused(now, priority.Normal, 0); got != 5*time.Second { // 41 away at 10/s
		t.Errorf("at once: %v", got)
	}
	now = now.Add(6 * time.Second)
	for range 60 {
		c.Admitted(now, priority.Normal) // 70 in 7 s
	}
	if got := c.Refused(now, priority.Normal, 0); got != time.Second {
		t.Errorf("when all are due back: %v", got)
	}
}

func TestRetryAfterDoublesWhileNothingIsAdmitted(t *testing.T) {
	var c entry.RetryAfter
	start := time.Unix(1e9, 0)
	for _, want := range []struct{ after, v time.Duration }{
		{0, 1}, {1, 2}, {3, 4}, {7, 8}, {15, 16}, {31, 30}, {3600, 30},
	} {
		if got := c.Refused(start.Add(want.after*time.Second), priority.Normal, 0); got != want.v*time.Second {
			t.Errorf("after %d s without an admission: %v, want %d s", want.after, got, want.v)
		}
	}
	now := start.Add(2 * time.Hour)
	c.Admitted(now, priority.Normal)
	if got := c.Refused(now, priority.Normal, 0); got != time.Second {
		t.Errorf("after an admission: %v", got)
	}
}

func TestRetryAfterSpreadsEvenlyOverVToTwoV(t *testing.T) {
	seen := map[time.Duration]int{}
	for i := range 1000 {
		var c entry.RetryAfter
		now := time.Unix(1e9, 0)
		c.Refused(now, priority.Normal, 0)
		seen[c.Refused(now.Add(7*time.Second), priority.Normal, float64(i)/1000)]++
	}
	for s := 8; s <= 16; s++ {
		if n := seen[time.Duration(s)*time.Second]; n < 100 || n > 125 {
			t.Errorf("%d s: %d of 1000", s, n)
		}
	}
	if len(seen) != 9 {
		t.Errorf("%v", seen)
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add([]byte{0, 1, 2, 250, 3, 4}, 0.5)
	f.Fuzz(func(t *testing.T, ops []byte, random float64) {
		var c entry.RetryAfter
		now := time.Unix(1e9, 0)
		for _, op := range ops {
			switch op % 4 {
			case 0:
				c.Admitted(now, priority.Level(op/4%4)-1)
			case 1:
				now = now.Add(time.Duration(op) * 50 * time.Millisecond)
			case 2:
				now = now.Add(-time.Duration(op) * time.Millisecond) // a clock that steps back
			default:
				got := c.Refused(now, priority.Level(op/4%4)-1, random)
				if got < time.Second || got > time.Minute || got%time.Second != 0 {
					t.Fatalf("come back in %v", got)
				}
			}
		}
	})
}

// What Same says of the callers to come holds for each of them, and to count them
// together is to count them one by one.
func TestRetryAfterIsTheSameAsOftenAsItSays(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var one, together entry.RetryAfter
		now := time.Unix(1e9, 0)
		for range 200 {
			now = now.Add(time.Duration(rnd.IntN(100)) * time.Millisecond)
			if rnd.IntN(10) < int(seed%8) {
				one.Admitted(now, priority.High)
				together.Admitted(now, priority.High)
			} else {
				one.Refused(now, priority.High, 0.5)
				together.Refused(now, priority.High, 0.5)
			}
		}
		v, callers, until := one.Same(now, priority.High)
		if !until.After(now) || until.Sub(now) > time.Second {
			t.Fatalf("seed %d: the same until %v from now", seed, until.Sub(now))
		}
		n := min(callers, 40)/(v+1)*(v+1) + v + 1
		for i := range n {
			at := now.Add(time.Duration(i) * (until.Sub(now) - 1) / time.Duration(n))
			mean := (float64(i%(v+1)) + 0.5) / float64(v+1)
			if got := one.Refused(at, priority.High, mean); i < callers && got != time.Duration(v+i%(v+1))*time.Second {
				t.Fatalf("seed %d: caller %d of %d is told %v, not from %d s", seed, i, callers, got, v)
			}
		}
		together.Told(now, priority.High, v, n)
		for s := range 14 {
			at := now.Add(time.Duration(s) * time.Second)
			a, _, _ := one.Same(at, priority.High)
			b, _, _ := together.Same(at, priority.High)
			if a != b && callers >= n {
				t.Fatalf("seed %d: %d s later %d s one by one, %d s together", seed, s, a, b)
			}
		}
	}
}
