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

	"github.com/headgate-go/headgate/ratelimit/internal/table"
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

// Tiers returns a limiter like [PerKey] whose numbers depend on Key.Plan. Keys
// whose plan is unknown or unset get the fallback, which must be set. The table is
// copied. A key that changes plan keeps its balance, as much as the new burst
// holds; a key at rest, which is one whose bucket has been full for a second, is full
// under whatever plan it has next.
func Tiers(fallback Plan, plans map[string]Plan, opts ...Option) *Buckets {
	b := newBuckets(fallback, "default", opts)
	b.plans = make(map[string]tier, len(plans))
	for name, plan := range plans {
		if plan.Unset() {
			plan.Rate, plan.Burst, plan.Allow = fallback.Rate, fallback.Burst, fallback.Allow
		}
		t, err := newTier(plan)
		b.fail(name, err)
		b.plans[name] = t
	}
	return b
}

// TiersFunc is [Tiers] with a function, for numbers that are a caller's own. It is
// called at each decision, possibly concurrently, and must be fast. A plan that is
// unset or not valid means the fallback; so do further numbers once the function
// has named 4,096 different pairs of them.
func TiersFunc(fallback Plan, pick func(Key) Plan, opts ...Option) *Buckets {
	b := newBuckets(fallback, "default", opts)
	b.pick = pick
	if pick == nil {
		b.fail("", errors.New("the function that picks plans is nil"))
	}
	return b
}

func newBuckets(rest Plan, name string, opts []Option) *Buckets {
	b := &Buckets{settings: settings{name: name, maxKeys: table.DefaultMaxKeys}}
	for _, opt := range opts {
		opt(&b.settings)
	}
	var err error
	b.rest, err = newTier(rest)
	b.fail("", err)
	b.fail("", b.settings.validate())
	return b
}

// Option changes a limiter in memory at set-up.
type Option func(*settings)

type settings struct {
	name    string
	maxKeys int
	shared  bool // one bucket for all keys
}

// Name names the limit in headers, metrics and logs. The default is "default", or
// "global" for [Global]. A reload keeps the balances of a limit of the same name.
func Name(name string) Option { return func(s *settings) { s.name = name } }

// MaxKeys bounds how many keys have a bucket of their own, some 90 bytes each;
// further keys share one. The default is a million.
func MaxKeys(n int) Option { return func(s *settings) { s.maxKeys = n } }

func (s *settings) validate() error {
	switch {
	case s.name == "":
		return errors.New("Name is empty")
	case s.maxKeys < 1:
		return fmt.Errorf("MaxKeys is %d, must be at least 1", s.maxKeys)
	}
	return nil
}

// fail keeps the first error, naming the limit and the plan.
func (b *Buckets) fail(plan string, err error) {
	switch {
	case err == nil || b.err != nil:
	case plan != "":
		b.err = fmt.Errorf("ratelimit: limit %q: plan %q: %w", b.name, plan, err)
	default:
		b.err = fmt.Errorf("ratelimit: limit %q: %w", b.name, err)
	}
}

// Take implements [Limiter]. It never blocks and ignores the context.
func (b *Buckets) Take(_ context.Context, now time.Time, key Key, cost int, maxWait time.Duration) (d Decision) {
	b.Decide(now, &key, cost, maxWait, &d)
	return d
}

// Decide is [Buckets.Take] with the answer written to d, which must be zero, for callers
// that decide for every request: nothing is copied from hand to hand. It keeps neither.
func (b *Buckets) Decide(now time.Time, key *Key, cost int, maxWait time.Duration, d *Decision) {
	s, want := b.open(now, key, d)
	if want == nil {
		return
	}
	q := table.Ask{Now: s.Clock(now), Cost: int64(max(cost, 1)), MaxWait: int64(maxWait)}
	var a table.Answer
	s.Take(b.hash(s, key), want, q, &a)
	s.Sweep(q.Now)
	d.answer(&a)
	if a.OK {
		d.Grant.From, d.Grant.Key, d.Grant.Cost, d.Grant.At, d.Grant.Mark = b, *key, int(q.Cost), now, uint64(a.Mark)
	}
}

// Peek implements [Peeker].
func (b *Buckets) Peek(now time.Time, key Key, cost int, maxWait time.Duration) (d Decision) {
	s, want := b.open(now, &key, &d)
	if want == nil {
		return d
	}
	q := table.Ask{Now: s.Clock(now), Cost: int64(max(cost, 1)), MaxWait: int64(maxWait)}
	var a table.Answer
	s.Peek(b.hash(s, &key), want, q, &a)
	d.answer(&a)
	return d
}

func (d *Decision) answer(a *table.Answer) {
	d.OK, d.Never, d.Wait, d.Remaining, d.Reset = a.OK, a.Never, a.Wait, a.Left, a.Reset
	if a.Overflow {
		d.Source = SourceOverflow
	}
}

// open returns the terms that key lives under, or nil when no bucket is needed to
// decide.
func (b *Buckets) open(now time.Time, key *Key, d *Decision) (*state, *table.Terms) {
	d.Policy = b.name
	if b.err != nil {
		d.Never = true
		return nil, nil
	}
	s := b.started(now)
	in := b.inForce(s, key, now)
	switch in.allow {
	case AllowEverything:
		d.OK, d.Remaining = true, math.MaxInt
		return s, nil
	case AllowNothing:
		d.Never = true
		return s, nil
	}
	return s, in.terms.Latest()
}

func (b *Buckets) hash(s *state, key *Key) table.Hash {
	if b.shared {
		return table.Shared
	}
	return s.Hash(key.Space, key.ID)
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
	in := b.inForce(s, &g.Key, now)
	if in.allow != AllowMetered {
		return
	}
	key, want := b.hash(s, &g.Key), in.terms.Latest()
	if by > 0 {
		s.Charge(key, want, s.Clock(now), int64(by))
		return
	}
	back := min(-max(int64(by), -math.MaxInt64), int64(g.Cost))
	s.Refund(key, want, s.Clock(now), table.Grant{At: s.Clock(g.At), Cost: int64(g.Cost), Mark: table.Mark(g.Mark)}, back)
}

// Stats implements [Counter]. Before the first take everything is zero.
func (b *Buckets) Stats() Stats {
	s := b.state.Load()
	if s == nil {
		return Stats{MaxKeys: b.maxKeys}
	}
	t := s.Table.Stats()
	return Stats{
		Keys: t.Keys, Extra: t.Extra, Peak: t.Peak, MaxKeys: t.Max,
		Overflow: t.Overflow, Uncharged: t.Uncharged,
	}
}
