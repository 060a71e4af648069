package ratelimit

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func ask1(l Limiter, now time.Time, id string) Decision {
	return l.Take(context.Background(), now, Key{Space: "addr", ID: id}, 1, 0)
}

// heap is what is in use after a collection.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A wave of keys leaves no memory behind, and frees no key that is owed a refusal.
//
// Case RL-11: public reports on rate limiters
func TestMemoryReturnsAfterAWaveOfKeys(t *testing.T) {
	const identities = manyKeys
	l := PerKey(1, 10, MaxKeys(2*identities))
	base := heap()
	now := epoch
	wave := func(name string) {
		for i := range identities {
			if !ask1(l, now, name+strconv.Itoa(i)).OK {
				t.Fatalf("%s %d refused", name, i)
			}
		}
	}
	wave("first-")
	peak := heap() - base
	per := peak / identities
	t.Logf("%d bytes of heap per key", per)
	if per > 100 {
		t.Errorf("%d bytes of heap per key, want at most 100", per)
	}

	// One key is owed a refusal throughout.
	for range 10 {
		ask1(l, now, "greedy")
	}
	now = now.Add(2 * time.Second)
	for range 600 { // a minute at ten requests a second
		now = now.Add(100 * time.Millisecond)
		ask1(l, now, "light")
		l.Take(context.Background(), now, Key{Space: "addr", ID: "greedy"}, 10, 0)
		if ask1(l, now, "greedy"); l.Peek(now, Key{Space: "addr", ID: "greedy"}, 2, 0).OK {
			t.Fatal("a key owed a refusal was forgotten")
		}
	}
	if n := l.Stats().Keys; n > identities/100 {
		t.Errorf("%d keys tracked, want under 1 %% of the peak", n)
	}
	if rest := heap() - base; rest > peak/10 {
		t.Errorf("%d bytes of heap left of %d, want under a tenth", rest, peak)
	}
	wave("second-")
	if again := heap() - base; again > peak+peak/10 {
		t.Errorf("the second wave takes %d bytes, the first took %d", again, peak)
	}
	runtime.KeepAlive(l)
}

func TestFloodCannotFreeALimitedKey(t *testing.T) {
	const bound = 2000
	l := PerKey(rate.Every(time.Minute), 2, MaxKeys(bound))
	now := epoch
	for range 2 {
		ask1(l, now, "limited")
	}
	admitted := 0
	for i := range 50 * bound {
		now = now.Add(500 * time.Microsecond) // 50 s in all: not a token for "limited"
		if ask1(l, now, strconv.Itoa(i)).OK {
			admitted++
		}
		if i%1000 == 0 && ask1(l, now, "limited").OK {
			t.Fatalf("freed after %d keys", i)
		}
	}
	s := l.Stats()
	if s.Keys > bound || s.Peak > bound || s.MaxKeys != bound {
		t.Errorf("%+v, the bound is %d", s, bound)
	}
	if s.Overflow == 0 {
		t.Error("no overflow was counted")
	}
	// Every key is new: those with a bucket pass once, the others share one.
	if most := bound + 2 + 1; admitted > most {
		t.Errorf("%d throw-away keys admitted, at most %d may be", admitted, most)
	}
	if d := ask1(l, now, "newcomer"); d.OK || d.Source != SourceOverflow && d.Remaining != 0 {
		t.Errorf("a newcomer to a full table: %+v", d)
	}
	if d := ask1(l, now.Add(10*time.Second), "limited"); !d.OK {
		t.Errorf("a minute on: %+v, want its token", d)
	}
}

func TestNewcomersShareOneStrictBucket(t *testing.T) {
	l := PerKey(1, 3, MaxKeys(1))
	ask1(l, epoch, "resident")
	for i := range 10 {
		d := ask1(l, epoch, strconv.Itoa(i))
		if d.OK != (i < 3) {
			t.Errorf("newcomer %d: %+v, want three admitted in all", i, d)
		}
		if d.Source != SourceOverflow {
			t.Errorf("newcomer %d: source %v", i, d.Source)
		}
	}
	if n := l.Stats().Overflow; n != 10 {
		t.Errorf("%d overflow decisions, want 10", n)
	}
	d := ask1(l, epoch.Add(time.Second), "again")
	d.Undo(epoch.Add(time.Second))
	if d := ask1(l, epoch.Add(time.Second), "another"); !d.OK {
		t.Errorf("after an undo: %+v", d)
	}
}

// However many goroutines race for one key, and whatever the order in which their
// clocks reach it, they pass exactly the burst and what refilled; what they undo
// can be had again.
func TestRacingCallersPassExactlyTheBurst(t *testing.T) {
	const callers, burst = 8, 2000
	l := PerKey(1, burst)
	var passed atomic.Int64
	// Near a full bucket an undo may return less than all; not so from here on.
	for range burst / 2 {
		ask1(l, epoch, "shared")
		passed.Add(1)
	}
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(1, 2))
			for range burst {
				d := ask1(l, epoch.Add(-time.Duration(r.IntN(1000))), "shared")
				switch {
				case d.OK && r.IntN(4) == 0:
					d.Undo(epoch)
				case d.OK:
					passed.Add(1)
				}
			}
		})
	}
	group.Wait()
	for ask1(l, epoch, "shared").OK {
		passed.Add(1)
	}
	if n := passed.Load(); n != burst {
		t.Errorf("%d passed, want %d", n, burst)
	}
}

// Keys come, go, overflow, reload and are looked at from all sides at once: no key gets
// more than it may.
func TestRacingTable(t *testing.T) {
	const bound, keys = 64, 200
	var limit atomic.Pointer[Buckets]
	limit.Store(PerKey(1000, 1, MaxKeys(bound)))
	var passed [keys]atomic.Int64
	var group sync.WaitGroup
	const span = 200 * time.Millisecond
	for w := range 4 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 7))
			for i := range 20_000 {
				now := epoch.Add(span * time.Duration(i) / 20_000)
				k := r.IntN(keys)
				if ask1(limit.Load(), now, strconv.Itoa(k)).OK {
					passed[k].Add(1)
				}
				if w == 0 && i%5000 == 0 {
					limit.Store(limit.Load().Own(limit.Load()).(*Buckets))
				}
			}
		})
	}
	group.Wait()
	for k := range passed {
		if n := passed[k].Load(); n > 201 {
			t.Errorf("key %d passed %d times, at most 201", k, n)
		}
	}
	if s := limit.Load().Stats(); s.Keys > bound || s.Peak > bound {
		t.Errorf("%+v, the bound is %d", s, bound)
	}
}
