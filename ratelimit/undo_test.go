package ratelimit

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

func sortPasses(passed []*pass) {
	slices.SortStableFunc(passed, func(a, b *pass) int { return cmp.Compare(a.at, b.at) })
}

// replay is the model of a bucket: what it would hold now had only these passed.
// The level is in nanoseconds of refill.
func replay(e era, passed []*pass, now time.Duration) (level time.Duration) {
	most := time.Duration(e.burst) * e.period
	level = most
	last := time.Duration(0)
	for _, p := range passed {
		level = min(level+p.at-last, most) - time.Duration(p.cost)*e.period
		last = p.at
	}
	return min(level+now-last, most)
}

// An undone grant leaves the bucket as if it had never been: never fuller, and
// exactly so when the undoing came before the bucket would have been full, oldest or
// latest first.
func TestUndoLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		e := w.eras[0]
		exact, latest := true, time.Duration(0)
		t.Repeat(map[string]func(*rapid.T){
			"advance": w.advance,
			"take": func(t *rapid.T) {
				cost := rapid.IntRange(1, e.burst).Draw(t, "cost")
				if d := w.limit.Take(context.Background(), w.wall(), Key{}, cost, 0); d.OK {
					p := &pass{at: w.true, cost: cost}
					w.passed[""] = append(w.passed[""], p)
					w.grants = append(w.grants, open{d, p})
					latest = p.at
				}
			},
			"undo": func(t *rapid.T) {
				if len(w.grants) == 0 {
					return
				}
				i := rapid.IntRange(0, len(w.grants)-1).Draw(t, "grant")
				g := w.grants[i]
				w.grants = slices.Delete(w.grants, i, i+1)
				at := slices.Index(w.passed[""], g.as)
				before := replay(e, w.passed[""][:at], g.as.at)
				full := g.as.at + time.Duration(e.burst)*e.period - before
				inOrder := i == 0 || at == len(w.passed[""])-1 && g.as.at == latest
				exact = exact && w.true <= full && inOrder
				g.d.Undo(w.wall())
				w.passed[""] = slices.Delete(w.passed[""], at, at+1)
			},
			"": func(t *rapid.T) {
				d := w.limit.(Peeker).Peek(w.wall(), Key{}, e.burst, 0)
				short := time.Duration(e.burst)*e.period - replay(e, w.passed[""], w.true)
				if d.Wait < short || exact && d.Wait != short {
					t.Fatalf("full in %v, want %v (exactly: %v)", d.Wait, short, exact)
				}
			},
		})
	})
}

func TestUndoReturnsAReservationExactly(t *testing.T) {
	l := PerKey(1, 1)
	reserve := func() Decision {
		return l.Take(context.Background(), epoch, Key{}, 1, time.Minute)
	}
	reserve()
	for range 5 {
		d := reserve()
		if !d.OK || d.Wait != time.Second || d.Remaining != 0 {
			t.Fatalf("got %+v, want granted in a second", d)
		}
		d.Undo(epoch)
	}
}

func TestUndoOfAForgottenKeyDoesNothing(t *testing.T) {
	l := PerKey(1, 2, MaxKeys(100))
	d := l.Take(context.Background(), epoch, Key{ID: "a"}, 2, 0)
	for i := range 1000 { // a round of the sweep takes 128
		l.Take(context.Background(), epoch.Add(time.Duration(i)*time.Minute), Key{ID: "b"}, 1, 0)
	}
	if n := l.Stats().Keys; n != 1 {
		t.Fatalf("%d keys, want the idle one forgotten", n)
	}
	now := epoch.Add(1000 * time.Minute)
	l.Take(context.Background(), now, Key{ID: "a"}, 2, 0)
	d.Undo(now)
	if d := l.Take(context.Background(), now, Key{ID: "a"}, 1, 0); d.OK {
		t.Errorf("got %+v: an old grant bought a new token", d)
	}
}

func TestChargeMayGoIntoDebt(t *testing.T) {
	l := PerKey(rate.Every(time.Second), 10)
	d := l.Take(context.Background(), epoch, Key{}, 1, 0)
	d.Adjust(epoch, 14)
	if d := l.Take(context.Background(), epoch, Key{}, 1, 0); d.OK || d.Wait != 6*time.Second || d.Remaining != 0 {
		t.Errorf("5 tokens in debt: %+v, want refused for 6 s", d)
	}
	d.Adjust(epoch, math.MaxInt)
	d.Adjust(epoch, math.MaxInt)
	if d := l.Take(context.Background(), epoch, Key{}, 1, 0); d.OK || d.Never || d.Wait <= 0 {
		t.Errorf("deep in debt: %+v", d)
	}
}

func TestRefundIsAtMostTheGrant(t *testing.T) {
	l := PerKey(rate.Every(time.Second), 10)
	l.Take(context.Background(), epoch, Key{}, 5, 0)
	d := l.Take(context.Background(), epoch, Key{}, 3, 0)
	d.Adjust(epoch, -100)
	if d := l.Take(context.Background(), epoch, Key{}, 1, 0); d.Remaining != 4 {
		t.Errorf("got %+v, want 4 left", d)
	}
}
