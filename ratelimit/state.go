package ratelimit

import (
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit/internal/table"
)

// state is what a limiter in memory has once it knows the time: a table, and the
// terms that its plans have there.
type state struct {
	*table.Table
	rest  inForce
	plans map[string]inForce
}

// inForce is a plan's part in a table: terms when it is metered.
type inForce struct {
	allow Allow
	terms *table.Terms
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
		old.Table = table.New(now, b.maxKeys)
	}
	s := &state{Table: old.Table}
	if len(b.plans) > 0 {
		s.plans = make(map[string]inForce, len(b.plans))
	}
	s.Bound(b.maxKeys)
	s.Change(s.Clock(now), func(replace func(*table.Terms, table.Limit) *table.Terms) {
		enter := func(old inForce, t tier) inForce {
			if t.Allow != AllowMetered {
				return inForce{allow: t.Allow}
			}
			return inForce{terms: replace(old.terms, t.Limit)}
		}
		s.rest = enter(old.rest, b.rest)
		for name, t := range b.plans {
			s.plans[name] = enter(old.plans[name], t)
		}
		b.state.Store(s)
	})
}

// inForce returns what applies to key.
func (b *Buckets) inForce(s *state, key *Key, now time.Time) inForce {
	if b.pick != nil {
		return b.pickedInForce(s, key, now)
	}
	if len(s.plans) > 0 {
		if in, ok := s.plans[key.Plan]; ok {
			return in
		}
	}
	return s.rest
}

func (b *Buckets) pickedInForce(s *state, key *Key, now time.Time) inForce {
	p := b.picked(*key)
	if p.Allow != AllowMetered {
		return inForce{allow: p.Allow}
	}
	if p.Rate == b.rest.Rate && p.Burst == b.rest.Burst {
		return s.rest
	}
	if t := s.Priced(p.Rate, p.Burst, s.Clock(now)); t != nil {
		return inForce{terms: t}
	}
	return s.rest
}

// Policy implements [Limiter].
func (b *Buckets) Policy(key Key) Policy {
	switch p := b.PlanOf(key); p.Allow {
	case AllowEverything:
		return Policy{Name: b.name, Rate: rate.Inf, Burst: math.MaxInt}
	case AllowNothing:
		return Policy{Name: b.name}
	default:
		return Policy{Name: b.name, Rate: p.Rate, Burst: p.Burst}
	}
}

// Validate implements [Limiter].
func (b *Buckets) Validate() error { return b.err }

// PlanOf implements [Planner].
func (b *Buckets) PlanOf(key Key) Plan {
	if b.pick != nil {
		return b.picked(key)
	}
	if t, ok := b.plans[key.Plan]; ok {
		return t.Plan
	}
	return b.rest.Plan
}

// picked returns what the function says, with the fallback's numbers where it says
// nothing or nothing valid.
func (b *Buckets) picked(key Key) Plan {
	p := b.pick(key)
	if p.Unset() || p.Allow > AllowNothing || p.Allow == AllowMetered && (p.Burst < 1 || table.CheckRate(p.Rate) != nil) {
		p.Rate, p.Burst, p.Allow = b.rest.Rate, b.rest.Burst, b.rest.Allow
	}
	return p
}

// saysMore reports whether a plan may say more than a rate. What a function says
// is not known beforehand.
func (b *Buckets) saysMore() bool {
	if b.pick != nil {
		return true
	}
	for _, p := range b.Plans() {
		if p.Cost > 1 || p.Level != "" || p.Share > 0 || p.Weight > 1 {
			return true
		}
	}
	return false
}

// Plans implements [PlanTable].
func (b *Buckets) Plans() iter.Seq2[string, Plan] {
	return func(yield func(string, Plan) bool) {
		if !yield("", b.rest.Plan) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(b.plans)) {
			if !yield(name, b.plans[name].Plan) {
				return
			}
		}
	}
}

var (
	_ Limiter   = (*Buckets)(nil)
	_ Undoer    = (*Buckets)(nil)
	_ Adjuster  = (*Buckets)(nil)
	_ Peeker    = (*Buckets)(nil)
	_ Owner     = (*Buckets)(nil)
	_ Adopter   = (*Buckets)(nil)
	_ Planner   = (*Buckets)(nil)
	_ PlanTable = (*Buckets)(nil)
	_ Counter   = (*Buckets)(nil)
)
