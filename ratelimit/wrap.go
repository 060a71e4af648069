package ratelimit

import (
	"context"
	"errors"
	"iter"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// wrapper is a limiter that changes what another one says or is asked.
type wrapper interface{ inner() Limiter }

// around is what all wrappers do alike.
type around struct{ limit Limiter }

func (a around) inner() Limiter { return a.limit }

// Plans implements [PlanTable].
func (a around) Plans() iter.Seq2[string, Plan] { return plansOf(a.limit) }

// Stats implements [Counter].
func (a around) Stats() Stats { return StatsOf(a.limit) }

// StoreStats implements [Stored].
func (a around) StoreStats() StoreStats { return storeStatsOf(a.limit) }

// Scoped returns l under another name and in a space of its own: the same caller
// has another balance there. Use it where one limiter's numbers serve several routes,
// each with its own balances. (One bucket for a whole route is [Global] with a
// [Name].) The parts of an [All] inside are named "name/part". An empty name is an
// error from Validate.
func Scoped(name string, l Limiter) Limiter {
	s := &scoped{around: around{l}, name: name, spaces: &joins{prefix: strconv.Itoa(len(name)) + ":" + name + "/"}}
	if several(l) {
		s.parts = &joins{prefix: name + "/"}
	}
	return s
}

type scoped struct {
	around
	name   string
	spaces *joins // the length in front of the name keeps the join injective
	parts  *joins // names of several limits inside; nil where there is one
}

// joins puts a prefix before words, once for each: they are words of the service, so
// there are few.
type joins struct {
	prefix string
	joined sync.Map // string → string
	count  atomic.Int32
}

const maxJoins = 64

func (j *joins) join(word string) string {
	if joined, ok := j.joined.Load(word); ok {
		return joined.(string)
	}
	joined := j.prefix + word
	if j.count.Add(1) <= maxJoins {
		j.joined.Store(word, joined)
	}
	return joined
}

// several reports whether l has more than one policy.
func several(l Limiter) bool {
	switch l := l.(type) {
	case *allOf:
		return len(l.limits) > 1
	case *scoped:
		return l.parts != nil
	case *shadow:
		return false
	case wrapper:
		return several(l.inner())
	}
	_, many := l.(Lister)
	return many
}

// Take implements [Limiter].
func (s *scoped) Take(ctx context.Context, now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	d := s.limit.Take(ctx, now, s.inside(key), cost, maxWait)
	s.rename(&d)
	if d.Grant.From != nil {
		d.Grant.From, d.Grant.Key = s, key
	}
	return d
}

// rename puts the scope's name into a decision.
func (s *scoped) rename(d *Decision) {
	d.Policy = s.named(d.Policy)
	if d.Shadow != "" {
		d.Shadow = s.named(d.Shadow)
	}
}

func (s *scoped) named(policy string) string {
	if s.parts == nil {
		return s.name
	}
	return s.parts.join(policy)
}

func (s *scoped) inside(key Key) Key {
	key.Space = s.spaces.join(key.Space)
	return key
}

// Peek implements [Peeker]; a limiter that cannot be looked at counts as agreeing.
func (s *scoped) Peek(now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	d := peek(s.limit, now, s.inside(key), cost, maxWait)
	s.rename(&d)
	return d
}

// Undo implements [Undoer].
func (s *scoped) Undo(now time.Time, g Grant) { s.grant(g).Undo(now) }

// Adjust implements [Adjuster].
func (s *scoped) Adjust(now time.Time, g Grant, by int) { s.grant(g).Adjust(now, by) }

func (s *scoped) grant(g Grant) Decision {
	g.Key = s.inside(g.Key)
	return within(s.limit, g)
}

// Policy implements [Limiter].
func (s *scoped) Policy(key Key) Policy {
	p := s.limit.Policy(s.inside(key))
	p.Name = s.named(p.Name)
	return p
}

// AppendPolicies implements [Lister].
func (s *scoped) AppendPolicies(dst []Policy, key Key) []Policy {
	from := len(dst)
	dst = AppendPolicies(dst, s.limit, s.inside(key))
	for i := range dst[from:] {
		dst[from+i].Name = s.named(dst[from+i].Name)
	}
	return dst
}

// PlanOf implements [Planner].
func (s *scoped) PlanOf(key Key) Plan { return planOf(s.limit, s.inside(key)) }

// Throttled implements [Feedback].
func (s *scoped) Throttled(now time.Time, key Key, pause time.Duration, factor float64) {
	throttled(s.limit, now, s.inside(key), pause, factor)
}

// Validate implements [Limiter].
func (s *scoped) Validate() error {
	if s.name == "" {
		return errors.New("ratelimit: Scoped: the name is empty")
	}
	return validate("Scoped", s.limit)
}

// Own implements [Owner].
func (s *scoped) Own(prev Limiter) Limiter {
	own := &scoped{name: s.name, spaces: s.spaces, parts: s.parts}
	if p, ok := prev.(*scoped); ok && p.name == s.name {
		own.limit = Own(s.limit, p.limit)
	} else {
		own.limit = Own(s.limit, nil)
	}
	return own
}

// Adopts implements [Adopter].
func (s *scoped) Adopts(prev Limiter) bool {
	p, ok := prev.(*scoped)
	return ok && p.name == s.name && adopts(s.limit, p.limit)
}

// Shadow returns l in shadow: it decides and counts, and lets every request through
// at once. A decision it would have refused says so in Decision.Shadow. What it does
// not enforce it does not advertise: its policy is unlimited, and it is left out of
// [AppendPolicies]. Taking it out of shadow keeps its balances on reload.
func Shadow(l Limiter) Limiter { return &shadow{around: around{l}, refused: new(atomic.Uint64)} }

type shadow struct {
	around
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

// Throttled implements [Feedback], so that the limit decides as it would outside of
// shadow. It still enforces nothing: see [Adapts].
func (s *shadow) Throttled(now time.Time, key Key, pause time.Duration, factor float64) {
	throttled(s.limit, now, key, pause, factor)
}

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

// AppendPolicies implements [Lister]: there is none.
func (s *shadow) AppendPolicies(dst []Policy, _ Key) []Policy { return dst }

// Stats implements [Counter].
func (s *shadow) Stats() Stats {
	sum := StatsOf(s.limit)
	sum.Shadowed += s.refused.Load()
	return sum
}
