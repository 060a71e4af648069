package redisrate

import (
	"context"
	"errors"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// errBusy is a call that got no turn: this process has too many, which says
// nothing about the store.
var errBusy = errors.New("redisrate: too many calls in flight")

// now is the time as accounts count it.
func (l *Limiter) now() time.Duration { return time.Since(l.start) }

// askLocked waits for the store's word on a request. It is called and returns
// with e locked; the lock is free while it waits.
func (l *Limiter) askLocked(ctx context.Context, e *entry, cost int, maxWait time.Duration) (verdict, time.Duration) {
	e.joinLocked(cost, maxWait)
	defer e.leaveLocked(cost)
	limit := time.NewTimer(l.conf.cold)
	defer limit.Stop()
	for {
		c := e.call
		if c == nil {
			c = l.launchLocked(e)
		}
		e.mu.Unlock()
		why := l.await(ctx, c, limit)
		e.mu.Lock()
		t := l.now()
		switch why {
		case gone:
			return verdict{wait: time.Nanosecond, source: ratelimit.SourceDirect}, t
		case overdue:
			l.overdueLocked(e, c, t)
		}
		if v := l.decideLocked(e, t, cost, maxWait); !v.call {
			return v, t
		}
	}
}

type outcome uint8

const (
	answered outcome = iota
	overdue
	gone
)

// await waits for c. Whoever joins late waits only for what is left of its time.
func (l *Limiter) await(ctx context.Context, c *call, limit *time.Timer) outcome {
	rest := time.NewTimer(c.started + l.conf.cold - l.now())
	defer rest.Stop()
	select {
	case <-c.done:
		return answered
	case <-ctx.Done():
		return gone
	case <-limit.C:
	case <-rest.C:
	}
	select {
	case <-c.done:
		return answered
	default:
		return overdue
	}
}

// overdueLocked gives up waiting: the share decides for this key until the store
// is heard again. The call goes on, for what it may still bring.
func (l *Limiter) overdueLocked(e *entry, c *call, t time.Duration) {
	e.account.goAway(t, l.peers.count())
	if e.call != c {
		return
	}
	if sent, ok := c.sentAt(); ok && t-sent >= l.conf.cold && c.counted.CompareAndSwap(false, true) {
		l.judge(result{t, sent, WhyTimeout, false})
	}
}

// launchLocked starts a call for those who wait and for what is expected.
func (l *Limiter) launchLocked(e *entry) *call {
	t := l.now()
	c := &call{done: make(chan struct{}), started: t, again: e.account.away}
	need, least, patience := 0, 0, time.Duration(0)
	if e.waiters > 0 {
		need, least, patience = max(1, e.need-e.account.held), e.least, e.patience
	}
	r := e.account.ask(t, need, least, patience)
	r.key = e.name
	e.call = c
	go l.run(e, c, r)
	return c
}

// run makes a call with a deadline of its own: a caller that hangs up must not
// look like a store that does not answer.
func (l *Limiter) run(e *entry, c *call, r request) {
	rep, err := l.lease(c, r)
	t := l.now()
	if sent, ok := c.sentAt(); ok && l.life.Err() == nil && c.counted.CompareAndSwap(false, true) {
		l.judge(result{t, sent, whyOf(err), c.again})
	}
	e.mu.Lock()
	if err == nil {
		e.account.apply(t, c.started, r, rep, l.peers.count())
		l.watchLocked(e)
	} else {
		e.account.fail(t, retryDelay(e.account.retries), l.peers.count())
	}
	e.call = nil
	if !e.account.away && e.account.unheard.tokens > 0 && !l.away.Load() {
		l.launchLocked(e)
	}
	e.mu.Unlock()
	close(c.done)
}

func (l *Limiter) lease(c *call, r request) (reply, error) {
	ctx, cancel := context.WithTimeout(l.life, l.conf.budget)
	defer cancel()
	select {
	case l.turns <- struct{}{}:
	case <-ctx.Done():
		return reply{}, errBusy
	}
	defer func() { <-l.turns }()
	c.sent.Store(int64(l.now()) + 1)
	return l.timed(ctx, r)
}

// timed makes the call and keeps count of it.
func (l *Limiter) timed(ctx context.Context, r request) (reply, error) {
	from := time.Now()
	rep, err := l.store.Lease(ctx, r)
	l.counts.called(whyOf(err), time.Since(from))
	return rep, err
}

// watchLocked sees to it that slots nobody wants any more reach the bucket again,
// also when no other request comes. Its timer ends when nothing is held.
func (l *Limiter) watchLocked(e *entry) {
	if e.timer || e.account.held == 0 && !e.account.unsaid() {
		return
	}
	e.timer = true
	time.AfterFunc(e.account.terms.tau, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.timer = false
		if l.life.Err() != nil {
			return
		}
		if t := l.now(); e.account.lull(t) && !l.away.Load() && t >= e.account.next {
			l.launchLocked(e)
		}
		l.watchLocked(e)
	})
}
