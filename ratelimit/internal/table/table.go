// Package table holds token buckets: exact balances of keys in a bounded, sharded
// table. It is told the time, reads no clock, and knows no limiter, plan or HTTP.
package table

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultMaxKeys bounds the table of a limiter that does not say otherwise.
const DefaultMaxKeys = 1_000_000

// Table holds the buckets of a limiter's keys: bounded, sharded, without pointers
// and without a goroutine. Keys are known by a seeded 128-bit hash only, so that
// no caller can aim at another's bucket. Only buckets that are full again are
// forgotten, a few shards at a time, by the traffic itself.
type Table struct {
	base   time.Time // the zero of the table's clock
	seeds  [3]maphash.Seed
	first  atomic.Pointer[space]
	shards []shard
	shift  uint // 64 − log₂ of the number of shards

	book  book
	max   atomic.Int64
	keys  atomic.Int64
	peak  atomic.Int64
	spilt atomic.Uint64
	lost  atomic.Uint64

	sweepDue  atomic.Int64
	sweepMu   sync.Mutex
	sweepNext int
	swept     int64        // when the last sweep was
	sweepFar  atomic.Int64 // a reading of the clock far from that; zero for none
}

// space is a key's space and its hash.
type space struct {
	name string
	hash uint64
}

// Hash is a key of the table; the low bit of where is always set. (An array of two
// words would live in memory, not in registers.)
type Hash struct{ where, what uint64 }

// Shared is the one key of a table that all callers share.
var Shared = Hash{1, 0}

// New returns an empty table for at most maxKeys buckets whose clock starts at base.
func New(base time.Time, maxKeys int) *Table {
	n := max(1, (maxKeys+shardKeys-1)/shardKeys)
	if maxKeys > 1 {
		n = max(n, 16)
	}
	log := bits.Len(uint(n - 1))
	t := &Table{base: base, shards: make([]shard, 1<<log), shift: uint(64 - log)}
	for i := range t.seeds {
		t.seeds[i] = maphash.MakeSeed()
	}
	t.max.Store(int64(maxKeys))
	return t
}

// Clock turns now into nanoseconds since the table was made. Where both carry a
// monotonic reading a step of the wall clock is not seen at all.
func (t *Table) Clock(now time.Time) int64 {
	return min(max(int64(now.Sub(t.base)), -forever/4), forever/4)
}

// Hash names a key. The space comes from the service and id from a client; two
// hashes of id under different seeds make 127 bits.
func (t *Table) Hash(space, id string) Hash {
	s := t.space(space)
	return Hash{
		(maphash.String(t.seeds[0], id) ^ s) | 1,
		maphash.String(t.seeds[1], id) + s,
	}
}

// space hashes a space. The first one seen is nearly always the only one.
func (t *Table) space(name string) uint64 {
	first := t.first.Load()
	if first != nil && first.name == name {
		return first.hash
	}
	h := maphash.String(t.seeds[2], name)
	if first == nil {
		t.first.CompareAndSwap(nil, &space{name, h})
	}
	return h
}

func (t *Table) shard(key Hash) *shard { return &t.shards[key.where>>t.shift] }

// Ask is a request in the table's terms.
type Ask struct {
	Now, Cost, MaxWait int64
}

// Answer is what a table says to it. It is written where the caller has it: returning
// it by value costs more than the rest.
type Answer struct {
	OK       bool
	Never    bool // no bucket under these terms can hold the cost
	Overflow bool // the bucket that newcomers share answered
	Wait     time.Duration
	Reset    time.Duration
	Left     int
	Mark     Mark
}

// Take asks the bucket of key for tokens, and remembers it if they were granted.
func (t *Table) Take(key Hash, want *Terms, q Ask, a *Answer) {
	if q.Cost > want.burst {
		t.Peek(key, want, q, a) // no bucket can hold that: leave it alone, and at rest
		return
	}
	s := t.shard(key)
	s.mu.Lock()
	if b := s.findLocked(key); b != nil {
		t.book.update(b, want, q.Now)
		b.take(&want.Limit, q.Now, q.Cost, q.MaxWait, a)
		s.mu.Unlock()
		return
	}
	b := want.newcomer(q.Now)
	b.take(&want.Limit, q.Now, q.Cost, q.MaxWait, a)
	switch {
	case a.OK && !t.addLocked(s, key, b, 0):
		t.spill(want, q, a)
	case !a.OK && t.keys.Load() >= t.max.Load(): // there was no bucket to be had but the shared one
		t.spilt.Add(1)
		a.Overflow = true
	}
	s.mu.Unlock()
}

// Peek answers as Take would, and changes nothing.
func (t *Table) Peek(key Hash, want *Terms, q Ask, a *Answer) {
	s := t.shard(key)
	s.mu.Lock()
	var b bucket
	known := s.findLocked(key)
	if known != nil {
		b = *known
	}
	s.mu.Unlock()
	if known == nil {
		b = want.newcomer(q.Now)
	}
	t.book.update(&b, want, q.Now)
	b.take(&want.Limit, q.Now, q.Cost, q.MaxWait, a)
	a.Mark = 0
}

// spill takes from the bucket that newcomers share while the table is full. The
// shard stays locked, or the key could be given a bucket of its own meanwhile, as
// if it had not passed here.
func (t *Table) spill(want *Terms, q Ask, a *Answer) {
	t.spilt.Add(1)
	*a = Answer{Overflow: true}
	want.withSpare(q.Now, func(b *bucket) { b.take(&want.Limit, q.Now, q.Cost, q.MaxWait, a) })
	a.Mark = a.Mark.overflow(want.index)
}

// addLocked enters the bucket of a key that is not there, if the table has room for
// it within its bound and extra buckets more.
func (t *Table) addLocked(s *shard, key Hash, b bucket, extra int64) bool {
	most := t.max.Load()
	n := t.keys.Add(1)
	if n > most+extra {
		t.keys.Add(-1)
		return false
	}
	n = min(n, most)
	for peak := t.peak.Load(); n > peak && !t.peak.CompareAndSwap(peak, n); {
		peak = t.peak.Load()
	}
	s.addLocked(key, b)
	return true
}

// debtors is how many buckets a table may have beyond its bound, for keys that are
// charged after the fact while it is full.
func (t *Table) debtors() int64 { return t.max.Load()/8 + 64 }

// Refund gives n of a grant's tokens back to the bucket that they came from. Nothing
// is owed to one that is full, forgotten or not.
func (t *Table) Refund(key Hash, want *Terms, now int64, g Grant, n int64) {
	if g.Mark&markOverflow != 0 {
		want.refundSpare(now, g, n)
		return
	}
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.findLocked(key); b != nil && !t.book.atRest(b, now-grace) {
		b.giveBack(&t.book.present(b, now).Limit, g, n)
	}
}

// Charge takes n more tokens from key's own bucket, and makes one where there is
// none: a debt must not reach the spare bucket, from which other keys start.
func (t *Table) Charge(key Hash, want *Terms, now, n int64) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.findLocked(key); b != nil {
		if t.book.atRest(b, now-grace) {
			t.book.update(b, want, now) // as if it had been forgotten
		}
		t.book.present(b, now)
		b.charge(n)
		return
	}
	b := want.newcomer(now)
	b.charge(n)
	if !t.addLocked(s, key, b, t.debtors()) {
		t.lost.Add(1)
	}
}

// Change enters terms for p in the place of old, or new ones when old is nil, as
// often as f asks for it: all that f does is one step to others who change terms.
func (t *Table) Change(now int64, f func(replace func(old *Terms, p Limit) *Terms)) {
	t.book.mu.Lock()
	defer t.book.mu.Unlock()
	f(func(old *Terms, p Limit) *Terms {
		if old == nil {
			return t.book.addLocked(p, now)
		}
		return t.book.replaceLocked(old.Latest(), p, now)
	})
}

// Bound changes how many keys may have a bucket.
func (t *Table) Bound(maxKeys int) { t.max.Store(int64(maxKeys)) }

// Stats are a table's numbers for gauges.
type Stats struct {
	Keys, Extra, Peak, Max int    // buckets within the bound and beyond it, most of the former, the bound
	Overflow, Uncharged    uint64 // decisions of shared buckets; charges that were lost
}

// Stats reads the numbers; it costs a few atomic loads.
func (t *Table) Stats() Stats {
	keys, most := t.keys.Load(), t.max.Load()
	return Stats{
		Keys: int(min(keys, most)), Extra: int(max(keys-most, 0)), Peak: int(t.peak.Load()), Max: int(most),
		Overflow: t.spilt.Load(), Uncharged: t.lost.Load(),
	}
}
