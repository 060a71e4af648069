package ratelimit

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Buckets is a [Limiter] in memory: a token bucket per key in a bounded table.
// Make one with [PerKey], [Global], [Tiers] or [TiersFunc]. It works as it is;
// Own gives a gate balances of its own. It is safe for concurrent use; Take
// allocates nothing and blocks on nothing but a shard's lock.
type Buckets struct {
	settings
	rest  tier            // for callers without a plan of their own
	plans map[string]tier // by Key.Plan; nil when all keys are alike
	pick  func(Key) Plan  // instead of plans
	err   error

	prev  *Buckets // whose balances are taken over at the first take
	once  sync.Once
	state atomic.Pointer[state]
}

// PerKey returns a limiter that gives every key a token bucket of its own: limit
// tokens per second, at most burst at once.
//
// A limit of zero means burst tokens ever. A burst below one, and a limit that is
// negative, NaN or infinite, are errors from Validate, and nothing is admitted.
func PerKey(limit rate.Limit, burst int, opts ...Option) *Buckets {
	return newBuckets(Plan{Rate: limit, Burst: burst}, "default", opts)
}

// Global returns a limiter whose one bucket all keys share. Its name is "global"
// unless an option says otherwise; the numbers mean what they mean for [PerKey].
func Global(limit rate.Limit, burst int, opts ...Option) *Buckets {
	b := newBuckets(Plan{Rate: limit, Burst: burst}, "global", opts)
	b.shared, b.maxKeys = true, 1
	return b
}

func newBuckets(rest Plan, name string, opts []Option) *Buckets {
	b := &Buckets{settings: settings{name: name, maxKeys: DefaultMaxKeys}}
	for _, opt := range opts {
		opt(&b.settings)
	}
	var err error
	b.rest, err = newTier(rest)
	b.fail("", err)
	b.fail("", b.settings.validate())
	return b
}

// Take implements [Limiter]. It never blocks and ignores the context.
func (b *Buckets) Take(_ context.Context, now time.Time, key Key, cost int, maxWait time.Duration) (d Decision) {
	s, want := b.open(now, key, &d)
	if want == nil {
		return d
	}
	q := ask{s.clock(now), int64(max(cost, 1)), int64(maxWait)}
	s.take(b.hash(s, key), want, q, &d)
	s.sweep(q.now)
	if d.OK {
		d.Grant.From, d.Grant.Key, d.Grant.Cost, d.Grant.At = b, key, int(q.cost), now
	}
	return d
}

// Peek implements [Peeker].
func (b *Buckets) Peek(now time.Time, key Key, cost int, maxWait time.Duration) (d Decision) {
	s, want := b.open(now, key, &d)
	if want == nil {
		return d
	}
	s.peek(b.hash(s, key), want, ask{s.clock(now), int64(max(cost, 1)), int64(maxWait)}, &d)
	return d
}

// open returns the terms that key lives under, or nil when no bucket is needed to
// decide.
func (b *Buckets) open(now time.Time, key Key, d *Decision) (*state, *terms) {
	d.Policy = b.name
	if b.err != nil {
		d.Never = true
		return nil, nil
	}
	s := b.started(now)
	in := b.inForce(s, key, now)
	switch in.allow {
	case Everything:
		d.OK, d.Remaining = true, math.MaxInt
		return s, nil
	case Nothing:
		d.Never = true
		return s, nil
	}
	return s, in.terms.latest()
}

func (b *Buckets) hash(s *state, key Key) hash {
	if b.shared {
		return hash{1, 0}
	}
	return s.hash(key)
}

// Undo implements [Undoer]: the tokens of g come back exactly, so far as the bucket
// would still hold them had they never been taken, and not at all when the numbers
// have changed since.
func (b *Buckets) Undo(now time.Time, g Grant) { b.Adjust(now, g, -g.Cost) }

// Adjust implements [Adjuster]. A refund comes back as in Undo: to a bucket that
// would have been full by now without the grant it adds nothing, so a handler that
// runs longer than its bucket takes to fill had better be charged afterwards than
// refunded. A charge may leave the key's own bucket in debt, which is then waited
// off. No other key pays for it: in a full table a key without a bucket gets one for
// its debt, up to an eighth of [MaxKeys] more of them; further charges are lost and
// counted in [Stats].
func (b *Buckets) Adjust(now time.Time, g Grant, by int) {
	s := b.state.Load()
	if s == nil || by == 0 || g.Cost < 1 {
		return
	}
	in := b.inForce(s, g.Key, now)
	if in.allow != Metered {
		return
	}
	key, want := b.hash(s, g.Key), in.terms.latest()
	if by > 0 {
		s.charge(key, want, s.clock(now), int64(by))
		return
	}
	back := min(-max(int64(by), -math.MaxInt64), int64(g.Cost))
	s.refund(key, want, s.clock(now), grant{s.clock(g.At), int64(g.Cost), mark(g.Mark)}, back)
}

// Policy implements [Limiter].
func (b *Buckets) Policy(key Key) Policy {
	switch p := b.PlanOf(key); p.Allow {
	case Everything:
		return Policy{Name: b.name, Rate: rate.Inf, Burst: math.MaxInt}
	case Nothing:
		return Policy{Name: b.name}
	default:
		return Policy{Name: b.name, Rate: p.Rate, Burst: p.Burst}
	}
}

// Validate implements [Limiter].
func (b *Buckets) Validate() error { return b.err }

// Stats implements [Counter]. Before the first take everything is zero.
func (b *Buckets) Stats() Stats {
	s := b.state.Load()
	if s == nil {
		return Stats{MaxKeys: b.maxKeys}
	}
	keys, most := s.keys.Load(), s.max.Load()
	return Stats{
		Keys: int(min(keys, most)), Extra: int(max(keys-most, 0)),
		Peak: int(s.peak.Load()), MaxKeys: int(most),
		Overflow: s.spilt.Load(), Uncharged: s.lost.Load(),
	}
}

var (
	_ Limiter  = (*Buckets)(nil)
	_ Owner    = (*Buckets)(nil)
	_ Peeker   = (*Buckets)(nil)
	_ Undoer   = (*Buckets)(nil)
	_ Adjuster = (*Buckets)(nil)
	_ Counter  = (*Buckets)(nil)
)
