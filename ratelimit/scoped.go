package ratelimit

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Scoped returns l under another name and in a space of its own: the same caller
// has another balance there. Use it where one limiter's numbers serve several routes,
// each with its own balances. (One bucket for a whole route is [Global] with a
// [Name].) An empty name is an error from Validate.
func Scoped(name string, l Limiter) Limiter {
	return &scoped{name: name, limit: l, spaces: &spaces{prefix: strconv.Itoa(len(name)) + ":" + name + "/"}}
}

type scoped struct {
	name   string
	limit  Limiter
	spaces *spaces
}

// spaces joins the scope to a key's space, once for each: spaces are words of the
// service, so there are few. The length in front keeps the join injective.
type spaces struct {
	prefix string
	joined sync.Map // string → string
	count  atomic.Int32
}

const maxSpaces = 64

func (s *spaces) join(space string) string {
	if joined, ok := s.joined.Load(space); ok {
		return joined.(string)
	}
	joined := s.prefix + space
	if s.count.Add(1) <= maxSpaces {
		s.joined.Store(space, joined)
	}
	return joined
}

// Take implements [Limiter].
func (s *scoped) Take(ctx context.Context, now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	d := s.limit.Take(ctx, now, s.inside(key), cost, maxWait)
	d.Policy = s.name
	if d.Grant.From != nil {
		d.Grant.From, d.Grant.Key = s, key
	}
	return d
}

func (s *scoped) inside(key Key) Key {
	key.Space = s.spaces.join(key.Space)
	return key
}

// Peek implements [Peeker]; a limiter that cannot be looked at counts as agreeing.
func (s *scoped) Peek(now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	d := peek(s.limit, now, s.inside(key), cost, maxWait)
	d.Policy = s.name
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
	p.Name = s.name
	return p
}

// PlanOf implements [Planner].
func (s *scoped) PlanOf(key Key) Plan { return planOf(s.limit, s.inside(key)) }

// Validate implements [Limiter].
func (s *scoped) Validate() error {
	if s.name == "" {
		return errors.New("ratelimit: Scoped: the name is empty")
	}
	return validate("Scoped", s.limit)
}

// Own implements [Owner].
func (s *scoped) Own(prev Limiter) Limiter {
	own := &scoped{name: s.name, spaces: s.spaces}
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

// Stats implements [Counter].
func (s *scoped) Stats() Stats { return StatsOf(s.limit) }
