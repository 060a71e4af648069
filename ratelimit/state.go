package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// state is what a limiter in memory has once it knows the time: a table, and the
// terms that its plans have there.
type state struct {
	*table
	rest  inForce
	plans map[string]inForce
}

// inForce is a plan's part in a table: terms when it is metered.
type inForce struct {
	allow Allow
	terms *terms
}

// Own implements [Owner]. Balances are kept when prev is a limiter of this kind and
// name. Nothing happens to prev until the new limiter's first Take: from that
// instant on both use the new numbers.
func (b *Buckets) Own(prev Limiter) Limiter {
	own := &Buckets{settings: b.settings, rest: b.rest, plans: b.plans, pick: b.pick, err: b.err}
	if b.Adopts(prev) {
		own.prev = unshadow(prev).(*Buckets)
	}
	return own
}

// Adopts implements [Adopter].
func (b *Buckets) Adopts(prev Limiter) bool {
	p, ok := unshadow(prev).(*Buckets)
	return ok && b.err == nil && p.err == nil && p.name == b.name && p.shared == b.shared
}

// started returns the limiter's state, made or taken over at the first take.
func (b *Buckets) started(now time.Time) *state {
	if s := b.state.Load(); s != nil {
		return s
	}
	b.once.Do(func() { b.start(now) })
	return b.state.Load()
}

func (b *Buckets) start(now time.Time) {
	var old state
	if b.prev != nil {
		old = *b.prev.started(now)
		b.prev = nil
	} else {
		old.table = newTable(now, b.maxKeys)
	}
	at := old.clock(now)
	s := &state{table: old.table}
	if len(b.plans) > 0 {
		s.plans = make(map[string]inForce, len(b.plans))
	}
	s.max.Store(int64(b.maxKeys))
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	s.rest = s.book.enterLocked(old.rest, b.rest, at)
	for name, t := range b.plans {
		s.plans[name] = s.book.enterLocked(old.plans[name], t, at)
	}
	b.state.Store(s)
}

// inForce returns what applies to key.
func (b *Buckets) inForce(s *state, key Key, now time.Time) inForce {
	if b.pick != nil {
		return b.pickedInForce(s, key, now)
	}
	if in, ok := s.plans[key.Plan]; ok {
		return in
	}
	return s.rest
}

func (b *Buckets) pickedInForce(s *state, key Key, now time.Time) inForce {
	p := b.picked(key)
	if p.Allow != Metered {
		return inForce{allow: p.Allow}
	}
	if p.Rate == b.rest.Rate && p.Burst == b.rest.Burst {
		return s.rest
	}
	if t := s.book.priced(p.Rate, p.Burst, s.clock(now)); t != nil {
		return inForce{terms: t}
	}
	return s.rest
}

// enterLocked puts a plan's terms in the place of those it had before.
func (k *termsBook) enterLocked(old inForce, t tier, now int64) inForce {
	switch {
	case t.Allow != Metered:
		return inForce{allow: t.Allow}
	case old.terms != nil:
		return inForce{terms: k.replaceLocked(old.terms.latest(), t.pace, now)}
	default:
		return inForce{terms: k.addLocked(t.pace, now)}
	}
}

// price is what a function may ask of a bucket.
type price struct {
	rate  rate.Limit
	burst int
}

// maxPrices bounds how many different numbers a function can enter.
const maxPrices = 4096

// prices finds the terms of numbers that a function named.
type prices struct {
	mu   sync.RWMutex
	byNo map[price]*terms
}

// priced returns the terms for the numbers, or nil when there are too many kinds.
func (k *termsBook) priced(limit rate.Limit, burst int, now int64) *terms {
	no := price{limit, burst}
	k.prices.mu.RLock()
	t := k.prices.byNo[no]
	k.prices.mu.RUnlock()
	if t != nil {
		return t
	}
	p, err := newPace(limit, burst)
	if err != nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prices.mu.Lock()
	defer k.prices.mu.Unlock()
	if t = k.prices.byNo[no]; t != nil || len(k.prices.byNo) >= maxPrices {
		return t
	}
	if k.prices.byNo == nil {
		k.prices.byNo = map[price]*terms{}
	}
	t = k.addLocked(p, now)
	k.prices.byNo[no] = t
	return t
}
