package table

import (
	"math/bits"
	"slices"
	"sync"
	"time"
)

// shard is a part of the table: buckets in one flat array without pointers, found
// by linear probing, behind one lock. Arrays are small (some 80 KB in a full table),
// so that growing or cleaning one is a step of microseconds and needs no
// background work.
type shard struct {
	mu    sync.Mutex
	slots []slot
	used  int
	_     [24]byte // a cache line per shard
}

// slot is a bucket and the hash of its key, together a cache line. The low bit of a
// hash is always set: zero is an empty slot.
type slot struct {
	key Hash
	bucket
}

const (
	shardKeys = 1024 // keys per shard in a table at its bound
	minSlots  = 8
)

// home is where the search for key starts: its second word scaled to the array, so
// that arrays may have any length.
func (s *shard) home(key Hash) int {
	hi, _ := bits.Mul64(key.what, uint64(len(s.slots)))
	return int(hi)
}

// findLocked returns the bucket of key, or nil.
func (s *shard) findLocked(key Hash) *bucket {
	if len(s.slots) == 0 {
		return nil
	}
	for i := s.home(key); ; i = s.after(i) {
		slot := &s.slots[i]
		if slot.key.where == key.where && slot.key.what == key.what {
			return &slot.bucket
		}
		if slot.key.where == 0 {
			return nil
		}
	}
}

func (s *shard) after(i int) int {
	if i++; i == len(s.slots) {
		return 0
	}
	return i
}

// addLocked enters the bucket of a key that is not there.
func (s *shard) addLocked(key Hash, b bucket) {
	// Four fifths full at most: probes stay short, and after growing by an eighth
	// a key still costs 90 bytes.
	if s.used+s.used/4+1 >= len(s.slots) {
		s.resizeLocked(max(minSlots, len(s.slots)+len(s.slots)/8+1))
	}
	s.placeLocked(slot{key, b})
	s.used++
}

func (s *shard) placeLocked(new slot) {
	i := s.home(new.key)
	for s.slots[i].key.where != 0 {
		i = s.after(i)
	}
	s.slots[i] = new
}

func (s *shard) resizeLocked(size int) {
	old := s.slots
	s.slots = makeSlots(size)
	for i := range old {
		if old[i].key.where != 0 {
			s.placeLocked(old[i])
		}
	}
}

// makeSlots returns at least n empty slots: all that fit into what the allocator
// hands out for n anyway.
func makeSlots(n int) []slot {
	slots := slices.Grow([]slot(nil), n)
	slots = slots[:cap(slots)]
	clear(slots)
	return slots
}

// grace is for how long a bucket must have been full before anything forgets it:
// calls that overtake each other are not that far apart, so none of them finds a
// new bucket at an instant when the old one was not full yet.
const grace = int64(time.Second)

// sweepLocked forgets the buckets that are full again, and returns how many.
func (s *shard) sweepLocked(book *book, now int64) int {
	kept := 0
	for i := range s.slots {
		slot := &s.slots[i]
		if slot.key.where == 0 {
			continue
		}
		if slot.last-now > maxLate {
			slot.rewind(now)
		}
		if book.atRest(&slot.bucket, now-grace) {
			slot.key.where &^= 1
			continue
		}
		kept++
	}
	gone := s.used - kept
	if gone > 0 {
		s.compactLocked(kept)
	}
	return gone
}

// compactLocked drops the slots marked as forgotten, in an array of the right size.
func (s *shard) compactLocked(kept int) {
	old := s.slots
	s.slots, s.used = nil, kept
	if kept == 0 {
		return
	}
	s.slots = makeSlots(max(minSlots, kept+kept/3+2))
	for i := range old {
		if old[i].key.where&1 != 0 {
			s.placeLocked(old[i])
		}
	}
}

// Every bucket is looked at once per round. A round is short when room is scarce.
const (
	sweepRound     = 30 * time.Second
	sweepRoundFull = 2 * time.Second
	sweepSteps     = 8 // shards per call at most: some 8 k buckets, a fraction of a millisecond
)

// Sweep forgets full buckets in the shards whose turn has come. It is called after
// each Take, outside any lock, and mostly returns at once.
func (t *Table) Sweep(now int64) {
	due := t.sweepDue.Load()
	// A due time far ahead was set by a clock that has since gone back.
	if now < due && due-now <= int64(sweepRound) {
		if t.sweepFar.Load() != 0 {
			t.sweepFar.Store(0)
		}
		return
	}
	if !t.sweepMu.TryLock() {
		return
	}
	defer t.sweepMu.Unlock()
	if !t.believe(now) {
		return
	}
	pause := int64(sweepRound)
	if max := t.max.Load(); t.keys.Load() > max-max/8 {
		pause = int64(sweepRoundFull)
	}
	pause = pause/int64(len(t.shards)) + 1
	steps := min(max((now-due)/pause+1, 1), sweepSteps, int64(len(t.shards)))
	t.sweepDue.Store(now + pause)
	if t.sweepNext == 0 {
		t.book.rest(now)
	}
	for range steps {
		s := &t.shards[t.sweepNext]
		t.sweepNext = (t.sweepNext + 1) % len(t.shards)
		s.mu.Lock()
		t.keys.Add(-int64(s.sweepLocked(&t.book, now)))
		s.mu.Unlock()
	}
}

// maxJump is how much later than the last sweep a single reading of the clock may
// say it is.
const maxJump = int64(6 * time.Hour)

// believe reports whether now is near the last sweep. A reading far from it, of a clock
// that is wrong or after a long rest, is believed when the next one agrees: one wrong
// clock must not free the keys of others, nor hold them.
func (t *Table) believe(now int64) bool {
	near := func(then int64) bool { return then-maxLate <= now && now <= then+maxJump }
	if far := t.sweepFar.Load(); !near(t.swept) && (far == 0 || !near(far)) {
		t.sweepFar.Store(now)
		return false
	}
	t.sweepFar.Store(0)
	t.swept = now
	return true
}
