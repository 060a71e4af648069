package redisrate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
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
// seconds, and calls that nobody waits for run in goroutines of their own, one at
// a time for a key. Close ends both.
//
// A Limiter is safe for concurrent use.
type Limiter struct {
	conf  *config
	bad   error // from set-up; such a limiter refuses everything
	store store
	start time.Time
	table *table
	rest  *entry // shared by newcomers when the table is full and the store away
	peers peers
	trip  roundTrip

	begun  atomic.Bool
	away   atomic.Bool  // the store counts as away
	failed atomic.Int64 // when a probe last failed, from start
	health struct {
		sync.Mutex
		breaker
		logged time.Duration
		quiet  int
	}
	beat, probe *time.Timer
	turns       chan struct{} // bounds calls in flight
	life        context.Context
	end         context.CancelFunc
	counts      counts
}

// PerKey returns a limiter that gives each key r requests per second and burst at
// once, shared by all processes that use the same Redis (or Valkey: alone, through
// Sentinel, or a cluster) and the same Name. It does not connect. A nil client and
// bad numbers are reported by Validate; such a limiter refuses everything.
//
// For a *redis.Client or *redis.ClusterClient the limiter opens a client of its
// own from the same options, with safe settings (no retries, short timeouts,
// deadlines honoured); hooks are not copied. Other clients are used as they are.
func PerKey(rdb redis.UniversalClient, r rate.Limit, burst int, options ...Option) *Limiter {
	return build(rdb, ratelimit.Plan{Rate: r, Burst: burst}, nil, options)
}

func build(rdb redis.UniversalClient, fallback ratelimit.Plan, plans map[string]ratelimit.Plan, options []Option) *Limiter {
	c := defaults()
	c.limit = limitOf(fallback)
	for _, set := range options {
		set(&c)
	}
	c.law.trip = c.budget
	c.setPlans(fallback, plans)
	bad := errors.Join(present(rdb), c.validate())
	if bad != nil {
		return &Limiter{conf: &c, bad: bad}
	}
	return newLimiter(&c, newRedisStore(rdb, c.budget))
}

// maxCalls bounds a limiter's calls in flight. Many keys at once queue behind it
// instead of opening a connection each.
const maxCalls = 64

func newLimiter(c *config, s store) *Limiter {
	l := &Limiter{conf: c, store: s, start: time.Now(), peers: newPeers(), turns: make(chan struct{}, maxCalls)}
	l.table = newTable(c.maxKeys, l.newEntry)
	l.rest = l.newEntry(ratelimit.Key{})
	l.rest.last = true
	l.health.parts = s.Parts()
	l.life, l.end = context.WithCancel(context.Background())
	return l
}

func (l *Limiter) newEntry(key ratelimit.Key) *entry {
	return &entry{
		key:     key,
		name:    bucketKey(l.conf.name, key),
		account: newAccount(l.conf.forPlan(key.Plan), l.view()),
	}
}

// Take implements ratelimit.Limiter. It asks the store only when nothing is known
// here: then it waits for an answer as Timeouts says, and not longer than ctx. A
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
	if !l.begun.Load() {
		l.begin()
	}
	cost, maxWait = max(1, cost), max(0, maxWait)
	t := now.Sub(l.start)
	e := l.entry(key, t)
	e.mu.Lock()
	e.planLocked(l, key.Plan)
	v := l.decideLocked(e, t, cost, maxWait)
	if v.call {
		v, t = l.askLocked(ctx, e, cost, maxWait)
	}
	d := l.decisionLocked(e, v, t, key, cost)
	e.mu.Unlock()
	l.counts.decided(d)
	return d
}

// entry returns key's entry. Without room for it, the store decides about a
// newcomer with no memory of it; while it is away all newcomers share one.
func (l *Limiter) entry(key ratelimit.Key, t time.Duration) *entry {
	e := l.table.get(key, t)
	switch {
	case e != nil:
		return e
	case l.away.Load():
		return l.rest
	}
	return l.newEntry(key)
}

// decideLocked decides from what is known, and starts the call that is due.
func (l *Limiter) decideLocked(e *entry, t time.Duration, cost int, maxWait time.Duration) verdict {
	l.overdueLocked(e, t)
	away := l.away.Load() || e.last
	if away {
		e.account.goAway(t, l.view())
		e.account.outOfReach(t, time.Duration(l.failed.Load()))
	}
	v := e.account.take(t, cost, maxWait)
	if !v.call && !away && e.account.due(t) {
		l.launchLocked(e)
	}
	return v
}

func (l *Limiter) decisionLocked(e *entry, v verdict, t time.Duration, key ratelimit.Key, cost int) ratelimit.Decision {
	d := ratelimit.Decision{
		OK: v.ok, Never: v.never, Wait: v.wait, Source: v.source,
		Policy: l.conf.name, Remaining: e.account.remaining(t), Reset: v.wait,
	}
	if v.ok {
		d.Reset = e.account.whole(d.Remaining)
		d.Grant = ratelimit.Grant{From: l, Key: key, Cost: cost, At: l.start.Add(t), Mark: mark(t+v.wait, v.source)}
	}
	return d
}

// Policy implements ratelimit.Limiter: the numbers in force for key, which may be
// a newer configuration's, lowered by a throttle, or this process' share.
func (l *Limiter) Policy(key ratelimit.Key) ratelimit.Policy {
	if d, ok := l.unmetered(key.Plan); ok {
		return unmeteredPolicy(l.conf.name, d.OK)
	}
	c := l.conf.forPlan(key.Plan)
	if l.bad != nil {
		return c.limit.policy(c.name)
	}
	e := l.table.find(key)
	if e == nil {
		return c.limit.policy(c.name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.account.inForceNow().policy(c.name)
}

// Validate implements ratelimit.Limiter.
func (l *Limiter) Validate() error { return l.bad }

// Throttled implements ratelimit.Feedback: everybody who shares key hears that a
// server asked for less. Nothing passes before pause is over, and the rate is
// multiplied by factor, to no less than a tenth: once for all who tell it within
// max(1 s, pause). After that it climbs by 5 % of the full rate a second. A pause
// is an hour at most. Throttled does not block.
func (l *Limiter) Throttled(now time.Time, key ratelimit.Key, pause time.Duration, factor float64) {
	if l.bad != nil {
		return
	}
	t := now.Sub(l.start)
	e := l.table.get(key, t)
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.account.throttled(t, min(max(0, pause), maxPause), factor)
	if !l.away.Load() && e.account.due(t) {
		l.launchLocked(e)
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
	return l.stop()
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
