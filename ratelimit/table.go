package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// table holds the buckets of a limiter's keys: bounded, sharded, without pointers
// and without a goroutine. Keys are known by a seeded 128-bit hash only, so that
// no caller can aim at another's bucket. Only buckets that are full again are
// forgotten, a few shards at a time, by the traffic itself.
type table struct {
	base   time.Time // the zero of the table's clock
	seeds  [3]maphash.Seed
	first  atomic.Pointer[space]
	shards []shard
	shift  uint // 64 − log₂ of the number of shards

	book  termsBook
	max   atomic.Int64
	keys  atomic.Int64
	peak  atomic.Int64
	spilt atomic.Uint64
	lost  atomic.Uint64

	sweepDue  atomic.Int64
	sweepMu   sync.Mutex
	sweepNext int
}

// space is a key's space and its hash.
type space struct {
	name string
	hash uint64
}

// hash is a key of the table; the low bit of where is always set. (An array of two
// words would live in memory, not in registers.)
type hash struct{ where, what uint64 }

func newTable(base time.Time, maxKeys int) *table {
	n := max(1, (maxKeys+shardKeys-1)/shardKeys)
	if maxKeys > 1 {
		n = max(n, 16)
	}
	log := bits.Len(uint(n - 1))
	t := &table{base: base, shards: make([]shard, 1<<log), shift: uint(64 - log)}
	for i := range t.seeds {
		t.seeds[i] = maphash.MakeSeed()
	}
	t.max.Store(int64(maxKeys))
	return t
}

// clock turns now into nanoseconds since the table was made. Where both carry a
// monotonic reading a step of the wall clock is not seen at all.
func (t *table) clock(now time.Time) int64 {
	return min(max(int64(now.Sub(t.base)), -forever/4), forever/4)
}

// hash names key in the table. Space comes from the service and ID from a client;
// two hashes of ID under different seeds make 127 bits.
func (t *table) hash(key Key) hash {
	space := t.space(key.Space)
	return hash{
		(maphash.String(t.seeds[0], key.ID) ^ space) | 1,
		maphash.String(t.seeds[1], key.ID) + space,
	}
}

// space hashes a space. The first one seen is nearly always the only one.
func (t *table) space(name string) uint64 {
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

func (t *table) shard(key hash) *shard { return &t.shards[key.where>>t.shift] }

// ask is a request in the table's terms.
type ask struct {
	now, cost, maxWait int64
}

// take asks the bucket of key for tokens, and remembers it if they were granted.
func (t *table) take(key hash, want *terms, q ask, d *Decision) {
	if q.cost > want.burst {
		t.peek(key, want, q, d) // no bucket can hold that: leave it alone, and at rest
		return
	}
	s := t.shard(key)
	s.mu.Lock()
	if b := s.findLocked(key); b != nil {
		t.book.settle(b, want, q.now)
		b.take(&want.pace, q.now, q.cost, q.maxWait, d)
		s.mu.Unlock()
		return
	}
	b := want.newcomer(q.now)
	b.take(&want.pace, q.now, q.cost, q.maxWait, d)
	switch {
	case d.OK && !t.addLocked(s, key, b, 0):
		t.spill(want, q, d)
	case !d.OK && t.keys.Load() >= t.max.Load(): // there was no bucket to be had but the shared one
		t.spilt.Add(1)
		d.Source = SourceOverflow
	}
	s.mu.Unlock()
}

// peek answers as take would, and changes nothing.
func (t *table) peek(key hash, want *terms, q ask, d *Decision) {
	s := t.shard(key)
	s.mu.Lock()
	var b bucket
	known := s.findLocked(key)
	if known != nil {
		b = *known
	}
	s.mu.Unlock()
	if known == nil {
		b = want.newcomer(q.now)
	}
	t.book.settle(&b, want, q.now)
	b.take(&want.pace, q.now, q.cost, q.maxWait, d)
	d.Grant = Grant{}
}

// spill takes from the bucket that newcomers share while the table is full. The
// shard stays locked, or the key could be given a bucket of its own meanwhile, as
// if it had not passed here.
func (t *table) spill(want *terms, q ask, d *Decision) {
	t.spilt.Add(1)
	*d = Decision{Policy: d.Policy, Source: SourceOverflow}
	want.withSpare(q.now, func(b *bucket) { b.take(&want.pace, q.now, q.cost, q.maxWait, d) })
	d.Grant.Mark = uint64(mark(d.Grant.Mark).overflow(want.index))
}

// addLocked enters the bucket of a key that is not there, if the table has room for
// it within its bound and extra buckets more.
func (t *table) addLocked(s *shard, key hash, b bucket, extra int64) bool {
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
func (t *table) debtors() int64 { return t.max.Load()/8 + 64 }

// refund gives n of a grant's tokens back to the bucket that they came from. Nothing
// is owed to one that is full, forgotten or not.
func (t *table) refund(key hash, want *terms, now int64, g grant, n int64) {
	if g.mark&markOverflow != 0 {
		want.refundSpare(now, g, n)
		return
	}
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.findLocked(key); b != nil && !t.book.atRest(b, now-grace) {
		b.giveBack(&t.book.present(b, now).pace, g, n)
	}
}

// charge takes n more tokens from key's own bucket, and makes one where there is
// none: a debt must not reach the spare bucket, from which other keys start.
func (t *table) charge(key hash, want *terms, now, n int64) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.findLocked(key); b != nil {
		if t.book.atRest(b, now-grace) {
			t.book.settle(b, want, now) // as if it had been forgotten
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

// Every bucket is looked at once per round. A round is short when room is scarce.
const (
	sweepRound     = 30 * time.Second
	sweepRoundFull = 2 * time.Second
	sweepSteps     = 8 // shards per call at most: some 8 k buckets, a fraction of a millisecond
)

// sweep forgets full buckets in the shards whose turn has come. It is called after
// each take, outside any lock, and mostly returns at once.
func (t *table) sweep(now int64) {
	due := t.sweepDue.Load()
	// A due time far ahead was set by a clock that has since gone back.
	if now < due && due-now <= int64(sweepRound) {
		return
	}
	if !t.sweepMu.TryLock() {
		return
	}
	defer t.sweepMu.Unlock()
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
