package table

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// Terms are the numbers a bucket lives under, from one reload to the next. They
// never change; a reload writes new ones and points the old at them, so that a
// bucket that was not used in between is brought up to date piece by piece: old
// numbers until the reload, new numbers from then on.
type Terms struct {
	Limit
	index uint32
	since int64                 // when they came into force, for those that replaced others
	next  atomic.Pointer[Terms] // what replaced them; nil while in force

	mu     sync.Mutex
	spare  bucket      // shared by newcomers when the table is full; also what a newcomer starts with
	atRest atomic.Bool // spare is full, as it is nearly always
}

// Latest follows reloads to the terms in force.
func (t *Terms) Latest() *Terms {
	for next := t.next.Load(); next != nil; next = t.next.Load() {
		t = next
	}
	return t
}

// newcomer returns the bucket of a key the table does not know. It starts as the
// spare bucket stands, so that neither a place in a table that was full nor a
// reload gives a key more than a bucket that had been there all along.
func (t *Terms) newcomer(now int64) bucket {
	if t.atRest.Load() {
		return bucket{tokens: t.burst, last: now, until: now, terms: t.index, era: born(now)}
	}
	t.mu.Lock()
	if t.spare.last-now > maxLate {
		t.spare.rewind(now)
	}
	b := t.spare
	t.mu.Unlock()
	b.refill(&t.Limit, now)
	b.until, b.ring, b.era = now, 0, born(now)
	return b
}

// withSpare runs f on the refilled spare bucket.
func (t *Terms) withSpare(now int64, f func(*bucket)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.atRest.Store(false)
	t.spare.refill(&t.Limit, now)
	f(&t.spare)
}

// refundSpare gives back n of a grant's tokens, if they came from this spare bucket.
func (t *Terms) refundSpare(now int64, g Grant, n int64) {
	t.withSpare(now, func(b *bucket) {
		if g.Mark.from(t.index) {
			b.restore(&t.Limit, g, n, false)
		}
	})
}

// rest notes whether the spare bucket is full again.
func (t *Terms) rest(now int64) {
	if t.atRest.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.spare.full(&t.Limit, now-grace) {
		t.spare.refill(&t.Limit, now)
		t.atRest.Store(true)
	}
}

// join puts b under terms t, balance kept, at the instant it was brought up to.
// What the new burst cannot hold is lost.
func (b *bucket) join(old, t *Terms) {
	b.terms = t.index
	b.move()
	if b.tokens >= t.burst {
		b.fill(&t.Limit)
		return
	}
	hi, lo := bits.Mul64(b.part, t.token)
	b.part, _ = bits.Div64(hi, lo, old.token)
}

// book numbers the terms of a table. Buckets refer to them by number, so that
// the table holds no pointers for the collector to follow. Terms are kept for the
// life of the table: a hundred bytes a reload.
type book struct {
	mu     sync.Mutex
	all    atomic.Pointer[[]*Terms]
	prices prices
}

func (k *book) at(index uint32) *Terms { return (*k.all.Load())[index] }

// rest notes which spare buckets are full again.
func (k *book) rest(now int64) {
	for _, t := range *k.all.Load() {
		t.rest(now)
	}
}

// addLocked enters terms for p, with the spare bucket full at now.
func (k *book) addLocked(p Limit, now int64) *Terms {
	var all []*Terms
	if old := k.all.Load(); old != nil {
		all = *old
	}
	t := &Terms{Limit: p, index: uint32(len(all)), since: now}
	t.spare = bucket{tokens: p.burst, last: now, until: now, terms: t.index, era: born(now)}
	t.atRest.Store(true)
	all = append(all, t) // in place where there is room: readers never look past their own length
	k.all.Store(&all)
	return t
}

// replaceLocked enters terms for p in the place of old, from now on.
func (k *book) replaceLocked(old *Terms, p Limit, now int64) *Terms {
	if old.Limit == p {
		return old
	}
	t := k.addLocked(p, now)
	old.mu.Lock()
	old.spare.refill(&old.Limit, now)
	t.spare = old.spare
	old.mu.Unlock()
	t.spare.join(old, t)
	t.since = max(now, t.spare.last)
	t.atRest.Store(t.spare.full(&p, now-grace))
	old.next.Store(t)
	return t
}

// reload takes b through the reloads of its plan, and returns the terms in force.
func (k *book) reload(b *bucket, now int64) *Terms {
	t := k.at(b.terms)
	for next := t.next.Load(); next != nil; next = t.next.Load() {
		if at := min(next.since, now); at > b.last {
			b.refill(&t.Limit, at)
		}
		b.join(t, next)
		t = next
	}
	return t
}

// atRest reports whether b was full at the given time. It changes nothing in b: the
// clock of a sweep is that of another key's request.
func (k *book) atRest(b *bucket, at int64) bool {
	t := k.at(b.terms)
	latest := t.Latest()
	switch {
	case latest == t:
		return b.full(&t.Limit, at)
	case latest.since > at && latest.since-at <= maxLate:
		return false
	}
	c := *b
	t = k.reload(&c, at)
	return c.full(&t.Limit, at)
}

// present brings b up to now under the plan it has, and returns that plan's terms.
func (k *book) present(b *bucket, now int64) *Terms {
	t := k.reload(b, now)
	b.refill(&t.Limit, now)
	return t
}

// settle brings b up to now, through every change of terms since it was last seen,
// and puts it under want.
func (k *book) update(b *bucket, want *Terms, now int64) {
	if b.terms != want.index {
		k.change(b, want, now)
	}
	b.refill(&want.Limit, now)
}

func (k *book) change(b *bucket, want *Terms, now int64) {
	old := k.reload(b, now)
	switch {
	case old == want:
	case b.full(&old.Limit, now-grace):
		b.renew(want, now)
	default:
		b.refill(&old.Limit, now)
		b.join(old, want)
	}
}

// renew puts a bucket at rest under another plan: as if it had been forgotten, so
// that it makes no difference whether the sweep came by.
func (b *bucket) renew(want *Terms, now int64) {
	*b = want.newcomer(now)
}

// price is a rate and a burst as a function names them.
type price struct {
	rate  rate.Limit
	burst int
}

// maxPrices bounds how many different numbers a function can enter.
const maxPrices = 4096

// prices finds the terms of numbers that a function named.
type prices struct {
	mu    sync.RWMutex
	terms map[price]*Terms
}

// Priced returns the terms for numbers that a function named, entered at now when
// they are new, or nil when there are too many kinds or they make no sense.
func (t *Table) Priced(limit rate.Limit, burst int, now int64) *Terms {
	return t.book.priced(limit, burst, now)
}

// priced returns the terms for the numbers, or nil when there are too many kinds.
func (k *book) priced(limit rate.Limit, burst int, now int64) *Terms {
	no := price{limit, burst}
	k.prices.mu.RLock()
	t := k.prices.terms[no]
	k.prices.mu.RUnlock()
	if t != nil {
		return t
	}
	p, err := NewLimit(limit, burst)
	if err != nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prices.mu.Lock()
	defer k.prices.mu.Unlock()
	if t = k.prices.terms[no]; t != nil || len(k.prices.terms) >= maxPrices {
		return t
	}
	if k.prices.terms == nil {
		k.prices.terms = map[price]*Terms{}
	}
	t = k.addLocked(p, now)
	k.prices.terms[no] = t
	return t
}
