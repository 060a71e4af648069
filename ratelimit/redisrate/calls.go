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

func (l *Limiter) view() view { return view{peers: l.peers.count(), trip: l.trip.value()} }

// patience is how long a request waits for the store.
func (l *Limiter) patience() time.Duration {
	if l.conf.fixed {
		return l.conf.cold
	}
	return min(l.trip.patience(), l.conf.budget)
}

// askLocked waits for the store's word on a request. It is called and returns
// with e locked; the lock is free while it waits.
func (l *Limiter) askLocked(ctx context.Context, e *entry, cost int, maxWait time.Duration) (verdict, time.Duration) {
	e.joinLocked(cost, maxWait)
	defer e.leaveLocked(cost)
	end := l.now() + l.patience()
	for {
		until := min(end, l.callLocked(e))
		news := e.newsLocked()
		e.mu.Unlock()
		left := l.await(ctx, news, until)
		e.mu.Lock()
		t := l.now()
		if left {
			return verdict{wait: time.Nanosecond, source: ratelimit.SourceDirect}, t
		}
		v := l.decideLocked(e, t, cost, maxWait)
		if v.call && t >= end {
			v = e.account.takeLate(t, cost)
		}
		if !v.call {
			return v, t
		}
	}
}

// callLocked sees to it that a call is on its way for all who wait, and returns when
// to look again. Who comes while a call is out is not part of it: after a quarter of
// the round trip another is made for those, instead of one after the other.
func (l *Limiter) callLocked(e *entry) time.Duration {
	a := &e.account
	if len(e.calls) == 0 {
		l.launchLocked(e)
		return e.calls[0].started + l.patience()
	}
	until := e.calls[0].started + l.patience()
	trip := l.trip.value()
	if trip == 0 || e.need <= a.held+a.flights.want || a.flights.n >= maxFlights {
		return until
	}
	next := e.calls[len(e.calls)-1].started + max(trip/4, time.Millisecond)
	if next <= l.now() {
		l.launchLocked(e)
		return until
	}
	return min(until, next)
}

// await waits for news until then, and says whether the caller left.
func (l *Limiter) await(ctx context.Context, news chan struct{}, until time.Duration) (left bool) {
	timer := time.NewTimer(until - l.now())
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	case <-ctx.Done():
		return true
	}
	return false
}

// overdueLocked finds the calls that are late. Those who wait for them are decided
// from what is known. Only when nothing came back for long is the store silent for
// this key; late calls go on, for what they still bring.
func (l *Limiter) overdueLocked(e *entry, t time.Duration) {
	if len(e.calls) == 0 || e.account.away {
		return
	}
	late, patience := 0, l.patience()
	for _, c := range e.calls {
		if t-c.started < patience {
			break
		}
		if sent, ok := c.sentAt(); ok && t-sent >= patience/2 && l.suspect(t, sent) {
			break
		}
		e.account.flights.overdue(c.serial)
		late++
	}
	e.calls = e.calls[:copy(e.calls, e.calls[late:])]
	f := &e.account.flights
	if f.late > 0 && f.n > 0 && t-f.since >= l.silence() {
		e.account.goAway(t, l.view())
	}
}

// silence is how long the store may say nothing before it counts as away for a key.
func (l *Limiter) silence() time.Duration { return min(l.trip.silence(), l.conf.budget) }

// launchLocked starts a call for those who wait and for what is expected.
func (l *Limiter) launchLocked(e *entry) {
	t := l.now()
	need, least, patience := 0, 0, time.Duration(0)
	if e.waiters > 0 {
		need, least, patience = max(1, e.need-e.account.held-e.account.flights.want), e.least, e.patience
	}
	r := e.account.ask(t, need, least, patience)
	r.key = e.name
	c := &call{started: t, serial: r.serial, again: e.account.away}
	e.calls = append(e.calls, c)
	go l.run(e, c, r)
}

// run makes a call with a deadline of its own: a caller that hangs up must not
// look like a store that does not answer.
func (l *Limiter) run(e *entry, c *call, r request) {
	rep, err := l.lease(c, r)
	t, why := l.now(), whyOf(err)
	if sent, ok := c.sentAt(); ok && l.life.Err() == nil {
		l.judge(result{t, sent, why, c.again})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.landLocked(c)
	if err == nil {
		e.account.apply(t, c.started, r, rep, l.view())
		l.watchLocked(e)
	} else {
		e.account.fail(t, retryDelay(e.account.retries), r, why == WhyLost, l.view())
	}
	if !l.away.Load() && !e.account.away && e.account.due(t) && e.account.unheard.owed(1) > 0 {
		l.launchLocked(e)
	}
	e.tellLocked()
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
	took, why := time.Since(from), whyOf(err)
	l.counts.called(why, took)
	if err == nil {
		l.trip.observe(took)
	}
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
