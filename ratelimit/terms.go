package ratelimit

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// terms are the numbers a bucket lives under, from one reload to the next. They
// never change; a reload writes new ones and points the old at them, so that a
// bucket nobody touched in between is brought up to date piece by piece: old
// numbers until the reload, new numbers from then on.
type terms struct {
	pace
	index uint32
	since int64                 // when they came into force, for those that replaced others
	next  atomic.Pointer[terms] // what replaced them; nil while in force

	mu     sync.Mutex
	spare  bucket      // shared by newcomers when the table is full; also what a newcomer starts with
	atRest atomic.Bool // spare is full, as it is nearly always
}

// latest follows reloads to the terms in force.
func (t *terms) latest() *terms {
	for next := t.next.Load(); next != nil; next = t.next.Load() {
		t = next
	}
	return t
}

// newcomer returns the bucket of a key the table does not know. It starts as the
// spare bucket stands, so that neither a place in a table that was full nor a
// reload gives anybody more than a bucket that had been there all along.
func (t *terms) newcomer(now int64) bucket {
	if t.atRest.Load() {
		return bucket{tokens: t.burst, last: now, terms: t.index}
	}
	t.mu.Lock()
	b := t.spare
	t.mu.Unlock()
	b.until, b.given, b.moves, b.grants = 0, 0, 0, 0
	b.refill(&t.pace, now)
	return b
}

// withSpare runs f on the refilled spare bucket.
func (t *terms) withSpare(now int64, f func(*bucket)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.atRest.Store(false)
	t.spare.refill(&t.pace, now)
	f(&t.spare)
}

// refundSpare gives back n of a grant's tokens, if they came from this spare bucket.
func (t *terms) refundSpare(now int64, g grant, n int64) {
	t.withSpare(now, func(b *bucket) {
		if g.mark.from(t.index) {
			b.restore(&t.pace, g, n, false)
		}
	})
}

// rest notes whether the spare bucket is full again.
func (t *terms) rest(now int64) {
	if t.atRest.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spare.full(&t.pace, now-grace) {
		t.spare.refill(&t.pace, now)
		t.atRest.Store(true)
	}
}

// join puts b under terms t, balance kept, at the instant it was brought up to.
// What the new burst cannot hold is lost.
func (b *bucket) join(old, t *terms) {
	b.terms, b.moves = t.index, b.moves+1
	if b.tokens >= t.burst {
		b.fill(&t.pace)
		return
	}
	hi, lo := bits.Mul64(b.part, t.token)
	b.part, _ = bits.Div64(hi, lo, old.token)
}

// termsBook numbers the terms of a table. Buckets refer to them by number, so that
// the table holds no pointers for the collector to follow. Terms are kept for the
// life of the table: a hundred bytes a reload.
type termsBook struct {
	mu     sync.Mutex
	all    atomic.Pointer[[]*terms]
	prices prices
}

func (k *termsBook) at(index uint32) *terms { return (*k.all.Load())[index] }

// rest notes which spare buckets are full again.
func (k *termsBook) rest(now int64) {
	for _, t := range *k.all.Load() {
		t.rest(now)
	}
}

// addLocked enters terms for p, with the spare bucket full at now.
func (k *termsBook) addLocked(p pace, now int64) *terms {
	var all []*terms
	if old := k.all.Load(); old != nil {
		all = *old
	}
	t := &terms{pace: p, index: uint32(len(all)), since: now}
	t.spare = bucket{tokens: p.burst, last: now, terms: t.index}
	t.atRest.Store(true)
	all = append(all, t) // in place where there is room: readers never look past their own length
	k.all.Store(&all)
	return t
}

// replaceLocked enters terms for p in the place of old, from now on.
func (k *termsBook) replaceLocked(old *terms, p pace, now int64) *terms {
	if old.pace == p {
		return old
	}
	t := k.addLocked(p, now)
	old.mu.Lock()
	old.spare.refill(&old.pace, now)
	t.spare = old.spare
	old.mu.Unlock()
	t.spare.join(old, t)
	t.since = max(now, t.spare.last)
	t.atRest.Store(t.spare.full(&p, now-grace))
	old.next.Store(t)
	return t
}

// reload takes b through the reloads of its plan, and returns the terms in force.
func (k *termsBook) reload(b *bucket, now int64) *terms {
	t := k.at(b.terms)
	for next := t.next.Load(); next != nil; next = t.next.Load() {
		b.refill(&t.pace, min(next.since, now))
		b.join(t, next)
		t = next
	}
	return t
}

// atRest reports whether b was full at the given time. It changes nothing in b: the
// clock of a sweep is that of another key's request.
func (k *termsBook) atRest(b *bucket, at int64) bool {
	t := k.at(b.terms)
	latest := t.latest()
	switch {
	case latest == t:
		return b.full(&t.pace, at)
	case latest.since > at:
		return false
	}
	c := *b
	t = k.reload(&c, at)
	return c.full(&t.pace, at)
}

// present brings b up to now under the plan it has, and returns that plan's terms.
func (k *termsBook) present(b *bucket, now int64) *terms {
	t := k.reload(b, now)
	b.refill(&t.pace, now)
	return t
}

// settle brings b up to now, through every change of terms since it was last seen,
// and puts it under want.
func (k *termsBook) settle(b *bucket, want *terms, now int64) {
	if b.terms != want.index {
		k.change(b, want, now)
	}
	b.refill(&want.pace, now)
}

func (k *termsBook) change(b *bucket, want *terms, now int64) {
	old := k.reload(b, now)
	switch {
	case old == want:
	case b.full(&old.pace, now-grace):
		b.renew(want, now)
	default:
		b.refill(&old.pace, now)
		b.join(old, want)
	}
}

// renew puts a bucket at rest under another plan: as if it had been forgotten, so
// that it makes no difference whether the sweep came by.
func (b *bucket) renew(want *terms, now int64) {
	moves, grants := b.moves+1, b.grants
	*b = want.newcomer(now)
	b.moves, b.grants = moves, grants
}
