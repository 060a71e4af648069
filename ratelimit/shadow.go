package ratelimit

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// Shadow returns l in shadow: it decides and counts, and lets everybody through at
// once. A decision it would have refused says so in Decision.Shadow. What it does
// not enforce it does not advertise: its policy is unlimited, and it is left out of
// [AppendPolicies]. Taking it out of shadow keeps its balances on reload.
func Shadow(l Limiter) Limiter { return &shadow{limit: l, refused: new(atomic.Uint64)} }

type shadow struct {
	limit   Limiter
	refused *atomic.Uint64
}

// Take implements [Limiter].
func (s *shadow) Take(ctx context.Context, now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	d := s.limit.Take(ctx, now, key, cost, maxWait)
	out := Decision{OK: true, Remaining: math.MaxInt, Source: d.Source, Shadow: d.Shadow, Grant: d.Grant}
	if out.Grant.From != nil {
		out.Grant.From = s
	}
	if !d.OK {
		s.refused.Add(1)
		out.Shadow = d.Policy
	}
	return out
}

// Peek implements [Peeker].
func (s *shadow) Peek(now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	out := Decision{OK: true, Remaining: math.MaxInt}
	if d := peek(s.limit, now, key, cost, maxWait); !d.OK {
		out.Shadow = d.Policy
	}
	return out
}

// Undo implements [Undoer].
func (s *shadow) Undo(now time.Time, g Grant) { within(s.limit, g).Undo(now) }

// Adjust implements [Adjuster].
func (s *shadow) Adjust(now time.Time, g Grant, by int) { within(s.limit, g).Adjust(now, by) }

// Policy implements [Limiter].
func (s *shadow) Policy(key Key) Policy { return Unlimited.Policy(key) }

// PlanOf implements [Planner].
func (s *shadow) PlanOf(key Key) Plan { return planOf(s.limit, key) }

// Validate implements [Limiter].
func (s *shadow) Validate() error { return validate("Shadow", s.limit) }

// Own implements [Owner]. A limiter that goes into shadow keeps its balances too.
func (s *shadow) Own(prev Limiter) Limiter {
	own := &shadow{refused: new(atomic.Uint64)}
	if p, ok := prev.(*shadow); ok {
		own.refused = p.refused
	}
	own.limit = Own(s.limit, unshadow(prev))
	return own
}

// Adopts implements [Adopter].
func (s *shadow) Adopts(prev Limiter) bool { return adopts(s.limit, unshadow(prev)) }

// unshadow returns the limiter in shadow, or l itself.
func unshadow(l Limiter) Limiter {
	if s, ok := l.(*shadow); ok {
		return s.limit
	}
	return l
}

// AppendPolicies implements [Lister].
func (s *shadow) AppendPolicies(dst []Policy, _ Key) []Policy { return dst }

// Stats implements [Counter].
func (s *shadow) Stats() Stats {
	sum := StatsOf(s.limit)
	sum.Shadowed += s.refused.Load()
	return sum
}
