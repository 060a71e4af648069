package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// PerKey returns a limiter that gives every key a token bucket of its own: limit
// tokens per second, at most burst at once.
//
// It works as it is; [Owner.Own] gives a gate balances of its own. Take costs no
// allocation and blocks on nobody but a shard's lock. A limit of zero means burst
// tokens ever. A burst below one, and a limit that is negative, NaN or infinite,
// are errors from Validate, and until then nothing is admitted.
func PerKey(limit rate.Limit, burst int, opts ...Option) *Buckets {
	return newBuckets(limit, burst, opts)
}

// Buckets is a [Limiter] in memory: a token bucket per key in a bounded table.
// Make one with [PerKey]. It is safe for concurrent use.
type Buckets struct {
	limit rate.Limit
	burst int
	settings
	pace pace
	err  error

	prev  *Buckets // whose balances are taken over at the first take
	once  sync.Once
	state atomic.Pointer[state]
}

// state is what a limiter has once time is known.
type state struct {
	*table
	terms *terms
}

// Option changes a limiter at set-up.
type Option func(*settings)

type settings struct {
	name    string
	maxKeys int
}

// DefaultMaxKeys bounds the table of a limiter that does not say otherwise.
const DefaultMaxKeys = 1_000_000

// Name names the limit in headers, metrics and logs. The default is "default".
func Name(name string) Option { return func(s *settings) { s.name = name } }

// MaxKeys bounds how many keys have a bucket of their own; further keys share one.
// The default is [DefaultMaxKeys].
func MaxKeys(n int) Option { return func(s *settings) { s.maxKeys = n } }

func newBuckets(limit rate.Limit, burst int, opts []Option) *Buckets {
	b := &Buckets{limit: limit, burst: burst, settings: settings{name: "default", maxKeys: DefaultMaxKeys}}
	for _, opt := range opts {
		opt(&b.settings)
	}
	b.pace, b.err = newPace(limit, burst)
	switch {
	case b.err != nil:
		b.err = fmt.Errorf("ratelimit: %s: %w", b.name, b.err)
	case b.maxKeys < 1:
		b.err = fmt.Errorf("ratelimit: %s: MaxKeys is %d, must be at least 1", b.name, b.maxKeys)
	case b.name == "":
		b.err = errors.New("ratelimit: Name is empty")
	}
	return b
}

// Take implements [Limiter]. It never blocks and ignores the context.
func (b *Buckets) Take(_ context.Context, now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	if b.err != nil {
		return Decision{Never: true, Policy: b.name}
	}
	s := b.started(now)
	at := s.clock(now)
	cost = max(cost, 1)
	a := s.take(s.hash(key), s.terms.latest(), at, int64(cost), int64(maxWait))
	s.sweep(at)
	d := Decision{
		OK: a.ok, Never: a.never, Wait: time.Duration(a.wait), Policy: b.name,
		Remaining: clampInt(a.left), Reset: time.Duration(a.full),
	}
	if a.mark&markOverflow != 0 {
		d.Source = SourceOverflow
	}
	if a.ok {
		d.Grant = Grant{From: b, Key: key, Cost: cost, At: now, Mark: uint64(a.mark)}
	}
	return d
}

func clampInt(n int64) int { return int(min(n, math.MaxInt)) }

// Undo implements [Undoer]: the tokens of g come back exactly, so far as the bucket
// would still hold them had they never been taken.
func (b *Buckets) Undo(now time.Time, g Grant) { b.Adjust(now, g, -g.Cost) }

// Adjust implements [Adjuster].
func (b *Buckets) Adjust(now time.Time, g Grant, by int) {
	s := b.state.Load()
	if s == nil || by == 0 || g.Cost < 1 {
		return
	}
	back := max(-int64(by), -math.MaxInt64)
	back = min(back, int64(g.Cost))
	s.adjust(s.hash(g.Key), s.terms.latest(), s.clock(now), s.clock(g.At), mark(g.Mark), int64(g.Cost), back)
}

// Policy implements [Limiter].
func (b *Buckets) Policy(Key) Policy { return Policy{Name: b.name, Rate: b.limit, Burst: b.burst} }

// Validate implements [Limiter].
func (b *Buckets) Validate() error { return b.err }

// Own implements [Owner]. Balances are kept when prev is a limiter of this kind
// and name. Nothing happens to prev until the new limiter's first Take: from that
// instant on both use the new numbers.
func (b *Buckets) Own(prev Limiter) Limiter {
	own := &Buckets{limit: b.limit, burst: b.burst, settings: b.settings, pace: b.pace, err: b.err}
	if p, ok := prev.(*Buckets); ok && p.err == nil && p.name == b.name {
		own.prev = p
	}
	return own
}

// started returns the limiter's table, made or taken over at the first take.
func (b *Buckets) started(now time.Time) *state {
	if s := b.state.Load(); s != nil {
		return s
	}
	b.once.Do(func() { b.start(now) })
	return b.state.Load()
}

func (b *Buckets) start(now time.Time) {
	prev := b.prev
	b.prev = nil
	if prev == nil {
		t := newTable(now, b.maxKeys)
		t.book.mu.Lock()
		defer t.book.mu.Unlock()
		b.state.Store(&state{t, t.book.addLocked(b.pace, t.clock(now))})
		return
	}
	s := prev.started(now)
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	s.max.Store(int64(b.maxKeys))
	b.state.Store(&state{s.table, s.book.replaceLocked(s.terms.latest(), b.pace, s.clock(now))})
}

var (
	_ Limiter  = (*Buckets)(nil)
	_ Owner    = (*Buckets)(nil)
	_ Adjuster = (*Buckets)(nil)
)
