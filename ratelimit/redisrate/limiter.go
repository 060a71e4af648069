package redisrate

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

// Limiter is a ceiling that many processes share: whatever their number, a key
// passes at most burst + rate·t times in any time t, as through one bucket in one
// process. Where it pays, decisions are made from slots leased ahead of need, so
// most cost no call; while the store is away each process keeps to its share.
//
// It is a ratelimit.Limiter, for the gate and for outbound calls alike. Its state
// is in Redis, so one Limiter may serve several gates.
//
// Nothing runs before the first Take. From then on a timer beats every two
// seconds, and calls without a waiting request run in goroutines of their own, one at
// a time for a key. Close ends both.
//
// A Limiter is safe for concurrent use.
type Limiter struct {
	conf  *config
	bad   error // from set-up; such a limiter refuses everything
	link  *link
	table *table
	rest  *entry // shared by newcomers when the table is full and the store away

	decisions [ratelimit.SourceCount]struct{ admitted, refused atomic.Uint64 }
	never     atomic.Uint64
}

// PerKey returns a limiter that gives each key r requests per second and burst at
// once, shared by all processes that use the same Redis (or Valkey: alone, through
// Sentinel, or a cluster) and the same Name. It does not connect. A nil client and
// bad numbers are reported by Validate; such a limiter refuses everything.
//
// For a *redis.Client or *redis.ClusterClient the limiter opens a client of its
// own from the same options, with safe settings (no retries, short timeouts,
// deadlines honoured); hooks are not copied. Other clients are used as they are.
func PerKey(rdb redis.UniversalClient, r rate.Limit, burst int, options Options) *Limiter {
	return build(rdb, ratelimit.Plan{Rate: r, Burst: burst}, nil, options)
}

// Tiers returns a limiter like PerKey whose numbers depend on Key.Plan, as
// ratelimit.Tiers does in memory. Keys whose plan is unknown or unset get the
// fallback, which must be set. A key that changes plan keeps its balance, as much
// as the new burst holds.
func Tiers(rdb redis.UniversalClient, fallback ratelimit.Plan, plans map[string]ratelimit.Plan, options Options) *Limiter {
	return build(rdb, fallback, plans, options)
}

func build(rdb redis.UniversalClient, fallback ratelimit.Plan, plans map[string]ratelimit.Plan, options Options) *Limiter {
	c := options.config()
	c.Limit.Rate, c.Limit.Burst = float64(fallback.Rate), fallback.Burst
	c.Law.Trip = c.budget
	c.setPlans(fallback, plans)
	bad := errors.Join(store.Present(rdb), c.validate())
	if bad != nil {
		return &Limiter{conf: &c, bad: bad}
	}
	return newLimiter(&c, store.New(rdb, c.budget))
}

func newLimiter(c *config, s backend) *Limiter {
	l := &Limiter{conf: c, link: newLink(c, s)}
	fresh := func(key ratelimit.Key) *entry { return newEntry(l.link, key) }
	l.table, l.rest = newTable(c.maxKeys, fresh), fresh(ratelimit.Key{})
	l.rest.last = true
	l.link.sweep = l.rejoin
	l.link.any = func() string {
		if e := l.table.any(); e != nil {
			return e.name
		}
		return l.rest.name
	}
	return l
}

// Take implements ratelimit.Limiter. It asks the store only when nothing is known
// here: then it waits for an answer as RequestTimeout says, and not longer than ctx. A
// request whose answer is late is decided from what is known of the bucket; what the
// call then brings pays for it, or is kept for the key's next request. When ctx ends
// first the request is refused. While the store is away the outage policy decides. now must come from time.Now.
//
// Cost: 0 allocations and no call while slots last or a refusal is known.
func (l *Limiter) Take(ctx context.Context, now time.Time, key ratelimit.Key, cost int, maxWait time.Duration) ratelimit.Decision {
	if l.bad != nil {
		return ratelimit.Decision{Never: true, Source: ratelimit.SourceClosed}
	}
	if d, ok := l.unmetered(key.Plan); ok {
		return d
	}
	if !l.link.begun.Load() {
		l.link.begin()
	}
	cost, maxWait = max(1, cost), max(0, maxWait)
	t := now.Sub(l.link.start)
	e := l.entry(key, t)
	e.mu.Lock()
	e.planLocked(key.Plan)
	v := e.decideLocked(t, cost, maxWait)
	if v.Call {
		v, t = e.askLocked(ctx, cost, maxWait)
	}
	d := l.decisionLocked(e, v, t, key, cost)
	e.mu.Unlock()
	l.count(d)
	return d
}

// entry returns key's entry. Without room for it, the store decides about a
// newcomer with no memory of it; while it is away all newcomers share one.
func (l *Limiter) entry(key ratelimit.Key, t time.Duration) *entry {
	e := l.table.get(key, t)
	switch {
	case e != nil:
		return e
	case l.link.away.Load():
		return l.rest
	}
	return newEntry(l.link, key)
}

// maxRejoin bounds the calls of one sweep.
const maxRejoin = 256

// rejoin brings keys back to the bucket that an outage left on their share and that
// are not asked for any more. It says whether some are left.
func (l *Limiter) rejoin() (left bool) {
	calls := 0
	l.table.each(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		call := e.account.Rejoin(l.link.now())
		if call && calls < maxRejoin {
			calls++
			e.launchLocked()
		}
		left = left || e.account.Away()
	})
	return left
}

func (l *Limiter) count(d ratelimit.Decision) {
	switch n := &l.decisions[d.Source]; {
	case d.Never:
		l.never.Add(1)
	case d.OK:
		n.admitted.Add(1)
	default:
		n.refused.Add(1)
	}
}

func (l *Limiter) decisionLocked(e *entry, v account.Verdict, t time.Duration, key ratelimit.Key, cost int) ratelimit.Decision {
	d := ratelimit.Decision{
		OK: v.Ok, Never: v.Never, Wait: v.Wait, Source: v.Source,
		Policy: l.conf.name, Remaining: e.account.Remaining(t), Reset: v.Wait,
	}
	if v.Ok {
		d.Reset = e.account.Whole(d.Remaining)
		d.Grant = ratelimit.Grant{From: l, Key: key, Cost: cost, At: l.link.start.Add(t), Mark: mark(t+v.Wait, v.Source)}
	}
	return d
}

// Peek implements ratelimit.Peeker. It makes no call: when only the store can
// tell, the answer is that the request would pass.
func (l *Limiter) Peek(now time.Time, key ratelimit.Key, cost int, maxWait time.Duration) ratelimit.Decision {
	if l.bad != nil {
		return ratelimit.Decision{Never: true, Source: ratelimit.SourceClosed}
	}
	if d, ok := l.unmetered(key.Plan); ok {
		return d
	}
	t := now.Sub(l.link.start)
	e := l.table.find(key)
	if e == nil {
		e = newEntry(l.link, key)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	v := e.account.Look(t, max(1, cost), max(0, maxWait))
	v.Ok = v.Ok || v.Call
	d := l.decisionLocked(e, v, t, key, cost)
	d.Grant = ratelimit.Grant{}
	return d
}

// Undo implements ratelimit.Undoer. Slots go back to this process, and to the
// bucket when they are not wanted here.
func (l *Limiter) Undo(now time.Time, g ratelimit.Grant) {
	l.change(now, g, func(a *account.Account, t, matured time.Duration, s ratelimit.Source) {
		a.Refund(t, g.Cost, matured, s)
	})
}

// Adjust implements ratelimit.Adjuster.
func (l *Limiter) Adjust(now time.Time, g ratelimit.Grant, by int) {
	l.change(now, g, func(a *account.Account, t, matured time.Duration, s ratelimit.Source) {
		a.Adjust(t, max(by, -g.Cost), matured, s)
	})
}

func (l *Limiter) change(now time.Time, g ratelimit.Grant, f func(a *account.Account, t, matured time.Duration, s ratelimit.Source)) {
	t := now.Sub(l.link.start)
	e := l.table.get(g.Key, t)
	if e == nil {
		return
	}
	matured, source := unmark(g.Mark)
	e.mu.Lock()
	defer e.mu.Unlock()
	f(&e.account, t, matured, source)
	e.watchLocked()
}

// mark packs when a grant matures, and what it came from, into a Grant's mark.
func mark(t time.Duration, s ratelimit.Source) uint64 { return uint64(t)<<4 | uint64(s) }

func unmark(m uint64) (time.Duration, ratelimit.Source) {
	return time.Duration(m >> 4), ratelimit.Source(m & 15)
}

// Validate implements ratelimit.Limiter.
func (l *Limiter) Validate() error { return l.bad }

// Throttled implements ratelimit.Feedback: all processes that share key learn that a
// server asked for less. Nothing passes before pause is over, and the rate is
// multiplied by factor, to no less than a tenth: once for all who tell it within
// max(1 s, pause). After that it climbs by 5 % of the full rate a second. A pause
// is an hour at most. Throttled does not block.
func (l *Limiter) Throttled(now time.Time, key ratelimit.Key, pause time.Duration, factor float64) {
	if l.bad != nil {
		return
	}
	t := now.Sub(l.link.start)
	e := l.table.get(key, t)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.account.Throttled(t, min(max(0, pause), maxPause), factor)
	if !l.link.away.Load() && e.account.Due(t) {
		e.launchLocked()
	}
}

const maxPause = time.Hour

// Close ends the beat, tells the peers, and closes the limiter's own client. A
// closed limiter decides as during an outage. Close waits for at most the time of
// one call; calling it again does nothing.
func (l *Limiter) Close() error {
	if l.bad != nil {
		return nil
	}
	return l.link.stop()
}

var (
	_ ratelimit.Limiter  = (*Limiter)(nil)
	_ ratelimit.Undoer   = (*Limiter)(nil)
	_ ratelimit.Adjuster = (*Limiter)(nil)
	_ ratelimit.Peeker   = (*Limiter)(nil)
	_ ratelimit.Planner  = (*Limiter)(nil)
	_ ratelimit.Counter  = (*Limiter)(nil)
	_ ratelimit.Feedback = (*Limiter)(nil)
)
