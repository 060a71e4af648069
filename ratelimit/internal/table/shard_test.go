package table

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// one is a world whose one plan has the given numbers.
func one(t *testing.T, perSecond float64, burst, maxKeys int) world {
	t.Helper()
	p, err := NewLimit(rate.Limit(perSecond), burst)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(maxKeys)
	w.Change(0, func(replace func(*Terms, Limit) *Terms) { w.plans[""] = replace(nil, p) })
	return w
}

// A decision grows at most one shard, or cleans at most sweepSteps of them, and no
// shard of a full table is large: BenchmarkLongestStep has what that takes.
func TestNoStepIsLong(t *testing.T) {
	const keys = 100_000
	w := one(t, 1000, 1, keys)
	for i := range keys {
		w.ask(strconv.Itoa(i), "", 0, 1)
	}
	largest := 0
	for i := range w.shards {
		largest = max(largest, len(w.shards[i].slots))
	}
	if most := 2 * shardKeys; largest > most {
		t.Errorf("a shard of %d slots, want at most %d", largest, most)
	}
	for now := int64(0); w.Stats().Keys > 1; {
		before := w.Stats().Keys
		now += int64(time.Hour)
		w.ask("light", "", now, 1)
		if gone := before - w.Stats().Keys; gone > sweepSteps*2*shardKeys || gone <= 0 && before > 1 {
			t.Fatalf("%d buckets forgotten in one step", gone)
		}
	}
}

// A sweep by a caller whose clock is a little ahead frees no key whose clock is not.
func TestForgettingDoesNotRunAhead(t *testing.T) {
	w := one(t, 1000, 1, 1000)
	w.ask("a", "", 0, 1)
	for i := range w.shards {
		w.shards[i].sweepLocked(&w.book, int64(time.Millisecond))
	}
	early := time.Millisecond - time.Microsecond
	if a := w.ask("a", "", int64(early), 1); a.OK || a.Wait != time.Microsecond {
		t.Errorf("a microsecond early: %+v", a)
	}
}

// Keys come, go, overflow, are undone and charged from all sides at once; the table's
// count agrees with its content.
func TestTheCountAgreesWithTheContent(t *testing.T) {
	w := one(t, 1000, 1, 64)
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			for i := range 5000 {
				now := int64(i) * int64(50*time.Microsecond)
				id := strconv.Itoa(r.IntN(200))
				a := w.ask(id, "", now, 1)
				switch {
				case a.OK && r.IntN(4) == 0:
					w.Refund(w.Hash("", id), w.plans[""], now, Grant{now, 1, a.Mark}, 1)
				case a.OK && r.IntN(4) == 0:
					w.Charge(w.Hash("", id), w.plans[""], now, 3)
				}
			}
		})
	}
	group.Wait()
	used := 0
	for i := range w.shards {
		used += w.shards[i].used
	}
	if s := w.Stats(); s.Keys+s.Extra != used || s.Peak > 64 || s.Keys > 64 {
		t.Errorf("%+v, but %d buckets", s, used)
	}
}
