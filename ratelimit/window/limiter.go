package window

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

// Limiter is a [ratelimit.Limiter] that admits a quota per key and window, by
// estimate. Make one with [PerKey] or [New]. It is safe for concurrent use. With its own
// counter Take allocates nothing and blocks on nothing but a lock; with a foreign
// one it waits for the counter, at most Options.Timeout.
//
// It never grants in advance: a maxWait is treated as zero.
type Limiter struct {
	opts Options
	period
	err    error
	counts *both
}

// both are this process' own counts and the foreign counter.
type both struct {
	local  *local
	remote *remote // nil without a foreign counter
}

// Unlimited is the quota of a plan that has none.
const Unlimited = math.MaxInt

// PerKey returns a limiter that admits quota per key in each window of the given
// length, and has the defaults of [Options] otherwise. What [New] returns an error for is
// one from Validate, and nothing is admitted.
func PerKey(quota int, length time.Duration) *Limiter {
	return build(Options{Quota: quota, Length: length})
}

// New returns a limiter, or an error that names the field of the options that is wrong.
func New(o Options) (*Limiter, error) {
	l := build(o)
	if l.err != nil {
		return nil, l.err
	}
	return l, nil
}

// MustNew is [New] for set-up code: it panics on an error.
func MustNew(o Options) *Limiter {
	l, err := New(o)
	if err != nil {
		panic(err)
	}
	return l
}

func build(o Options) *Limiter {
	o = o.withDefaults()
	l := &Limiter{opts: o, period: o.period()}
	if err := o.check(); err != nil {
		l.err = fmt.Errorf("ratelimit/window: limit %q: %w", o.Name, err)
		return l
	}
	l.counts = l.fresh()
	return l
}

func (l *Limiter) fresh() *both {
	c := &both{local: newLocal(l.opts.MaxKeys)}
	if l.opts.Counter != nil {
		l.opts.Counter.Config(l.opts.Quota, l.length)
		c.remote = newRemote(l.opts.Counter, &l.period, l.opts.Timeout)
	}
	return c
}

// Peek implements [ratelimit.Peeker] by this process' own count alone: a foreign
// counter is not asked.
func (l *Limiter) Peek(now time.Time, key ratelimit.Key, cost int, _ time.Duration) (d ratelimit.Decision) {
	a, open := l.ask(now, key, cost, &d)
	if open {
		a.admit(l.counts.local.look(l.counts.local.hash(key.Space, key.ID)))
		a.answer(&d)
	}
	return d
}

// Take implements [ratelimit.Limiter]. The context ends the wait for a foreign
// counter, as a failure of it.
func (l *Limiter) Take(ctx context.Context, now time.Time, key ratelimit.Key, cost int, _ time.Duration) (d ratelimit.Decision) {
	a, open := l.ask(now, key, cost, &d)
	if !open {
		return d
	}
	source := ratelimit.SourceDirect
	if l.counts.remote == nil || !l.counts.remote.take(ctx, key, &a) {
		source = l.alone(key, &a)
	} else if a.ok {
		// Keeps this process' own count warm for when the foreign one is away.
		l.counts.local.note(l.counts.local.hash(key.Space, key.ID), a.cost)
	}
	a.answer(&d)
	if d.Source = source; source == ratelimit.SourceClosed {
		d.Wait, d.Reset = pause, pause
	}
	if d.OK && source != ratelimit.SourceOpen {
		d.Grant = ratelimit.Grant{From: l, Key: key, Cost: int(a.cost), At: now, Mark: mark(a.window, source)}
	}
	return d
}

// ask says what is asked, or decides where no count is needed for it.
func (l *Limiter) ask(now time.Time, key ratelimit.Key, cost int, d *ratelimit.Decision) (a asked, open bool) {
	d.Policy = l.opts.Name
	quota := l.quotaFor(key)
	cost = max(cost, 1)
	switch {
	case l.err != nil || cost > quota:
		d.Never = true
		return a, false
	case quota == Unlimited:
		d.OK, d.Remaining = true, math.MaxInt
		return a, false
	}
	a = asked{quota: int64(quota), cost: int64(cost), dated: l.calendar()}
	a.window, a.length, a.elapsed = l.counts.local.at(now, &l.period)
	return a, true
}

// asked is a question and, once decided, its answer.
type asked struct {
	window, quota, cost int64
	length              time.Duration
	usage
	dated bool // a window of a calendar: what was used before it does not count
	ok    bool
}

// admit decides on counts.
func (a *asked) admit(now, before int64) bool {
	a.now, a.before = max(now, 0), max(before, 0)
	if a.dated {
		a.before = 0
	}
	a.ok = a.fits(a.quota, a.cost, a.length)
	return a.ok
}

func (a *asked) answer(d *ratelimit.Decision) {
	d.OK = a.ok
	d.Reset = a.length - a.elapsed
	switch {
	case a.ok:
		a.now += a.cost
	case a.dated:
		d.Wait = d.Reset
	default:
		d.Wait = a.wait(a.quota, a.cost, a.length)
		d.Reset = d.Wait
	}
	d.Remaining = int(min(a.left(a.quota, a.length), math.MaxInt))
}

// alone decides without the foreign counter.
func (l *Limiter) alone(key ratelimit.Key, a *asked) ratelimit.Source {
	if l.counts.remote != nil {
		switch l.opts.OnOutage {
		case ratelimit.FailOpen:
			a.ok = true
			return ratelimit.SourceOpen
		case ratelimit.FailClosed:
			a.now = a.quota
			return ratelimit.SourceClosed
		}
	}
	c := l.counts.local
	in, shared := c.use(c.hash(key.Space, key.ID), a.window, a.cost, func(now, before int64, turned bool) bool {
		if turned {
			a.elapsed = 0 // another request turned the window since
		}
		return a.admit(now, before)
	})
	a.window = in
	switch {
	case shared:
		return ratelimit.SourceOverflow
	case l.counts.remote != nil:
		return ratelimit.SourceShare
	default:
		return ratelimit.SourceLocal
	}
}

func (l *Limiter) quotaFor(key ratelimit.Key) int {
	if quota, ok := l.opts.Plans[key.Plan]; ok {
		return quota
	}
	return l.opts.Quota
}

// Policy implements [ratelimit.Limiter].
func (l *Limiter) Policy(key ratelimit.Key) ratelimit.Policy {
	quota := l.quotaFor(key)
	p := ratelimit.Policy{Name: l.opts.Name, Burst: quota, Window: l.length, Rate: rate.Inf}
	if quota != Unlimited {
		p.Rate = rate.Limit(float64(quota) / l.length.Seconds())
	}
	return p
}

// Validate implements [ratelimit.Limiter].
func (l *Limiter) Validate() error { return l.err }

// Own implements [ratelimit.Owner]. Counts are kept from a limiter of the same name
// and length; a foreign counter is shared by nature.
func (l *Limiter) Own(prev ratelimit.Limiter) ratelimit.Limiter {
	own := *l
	switch {
	case l.err != nil:
	case l.Adopts(prev):
		old := prev.(*Limiter).counts
		own.counts = &both{local: old.local, remote: l.counts.remote}
		own.counts.local.max.Store(int64(l.opts.MaxKeys))
	default:
		own.counts = &both{local: newLocal(l.opts.MaxKeys), remote: l.counts.remote}
	}
	return &own
}

// Adopts implements [ratelimit.Adopter].
func (l *Limiter) Adopts(prev ratelimit.Limiter) bool {
	p, ok := prev.(*Limiter)
	return ok && l.err == nil && p.err == nil && p.opts.Name == l.opts.Name && p.same(&l.period)
}

// Stats implements [ratelimit.Counter].
func (l *Limiter) Stats() ratelimit.Stats {
	if l.err != nil {
		return ratelimit.Stats{}
	}
	c := l.counts.local
	keys, most := c.keys.Load(), c.max.Load()
	return ratelimit.Stats{
		Keys: int(min(keys, most)), Extra: int(max(keys-most, 0)), MaxKeys: int(most),
		Overflow: c.overflow.Load(), Uncharged: c.lost.Load(),
	}
}

var (
	_ ratelimit.Limiter  = (*Limiter)(nil)
	_ ratelimit.Owner    = (*Limiter)(nil)
	_ ratelimit.Adopter  = (*Limiter)(nil)
	_ ratelimit.Peeker   = (*Limiter)(nil)
	_ ratelimit.Undoer   = (*Limiter)(nil)
	_ ratelimit.Adjuster = (*Limiter)(nil)
	_ ratelimit.Counter  = (*Limiter)(nil)
)
