package redisrate

import (
	"context"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

// decideLocked decides from what is known, and starts the call that is due.
func (e *entry) decideLocked(t time.Duration, cost int, maxWait time.Duration) account.Verdict {
	e.overdueLocked(t)
	away := e.link.away.Load() || e.last
	if away {
		e.link.strays.Store(true)
		e.account.GoAway(t, e.link.view())
	}
	v := e.account.Take(t, cost, maxWait)
	if !v.Call && !away && e.account.Due(t) {
		e.launchLocked()
	}
	return v
}

// askLocked waits for the store's word on a request. It is called and returns
// with e locked; the lock is free while it waits.
func (e *entry) askLocked(ctx context.Context, cost int, maxWait time.Duration) (account.Verdict, time.Duration) {
	end := e.link.now() + e.link.patience()
	for {
		e.joinLocked(cost, maxWait)
		until := min(end, e.callLocked())
		news := e.newsLocked()
		e.mu.Unlock()
		left := e.await(ctx, news, until)
		e.mu.Lock()
		e.leaveLocked(cost)
		t := e.link.now()
		if left {
			return account.Verdict{Wait: time.Nanosecond, Source: ratelimit.SourceDirect}, t
		}
		v := e.decideLocked(t, cost, maxWait)
		if v.Call && t >= end {
			v = e.account.TakeLate(t, cost)
		}
		if !v.Call {
			return v, t
		}
	}
}

// callLocked sees to it that a call is on its way for all who wait, and returns when
// to look again. Who comes while a call is out is not part of it: after a quarter of
// the round trip another is made for those, instead of one after the other.
func (e *entry) callLocked() time.Duration {
	a := &e.account
	if len(e.calls) == 0 {
		e.launchLocked()
		return e.calls[0].started + e.link.patience()
	}
	until := e.calls[0].started + e.link.patience()
	trip := e.link.trip.Value()
	if trip == 0 || !a.Uncovered(e.need) {
		return until
	}
	next := e.calls[len(e.calls)-1].started + max(trip/4, time.Millisecond)
	if next <= e.link.now() {
		e.launchLocked()
		return until
	}
	return min(until, next)
}

// await waits for news until then, and says whether the caller left.
func (e *entry) await(ctx context.Context, news chan struct{}, until time.Duration) (left bool) {
	timer := time.NewTimer(until - e.link.now())
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	case <-ctx.Done():
		return true
	}
	return false
}

// overdueLocked finds the calls that are late. Requests that wait for them are decided
// from what is known. Only when nothing came back for long is the store silent for
// this key; late calls go on, for what they still bring.
func (e *entry) overdueLocked(t time.Duration) {
	if e.account.Away() || !e.account.Calls() {
		return
	}
	late, patience := 0, e.link.patience()
	for _, c := range e.calls {
		if t-c.started < patience {
			break
		}
		if sent, ok := c.sentAt(); ok && t-sent >= patience/2 && e.link.suspect(t, sent) {
			break
		}
		e.account.Overdue(c.serial)
		late++
	}
	e.calls = e.calls[:copy(e.calls, e.calls[late:])]
	e.account.Listen(t, e.link.silence(), e.link.view())
	if e.account.Away() {
		e.link.strays.Store(true)
	}
}

// launchLocked starts a call for the requests that wait and for what is expected.
func (e *entry) launchLocked() {
	t := e.link.now()
	need, least, patience := 0, 0, time.Duration(0)
	if e.waiters > 0 {
		need, least, patience = e.account.Missing(e.need), e.least, e.patience
	}
	r := e.account.Ask(t, need, least, patience)
	r.Key = e.name
	if r.Bill > 0 {
		r.Payer = store.BillKey(e.name, e.link.peers.ID)
	}
	c := &call{started: t, serial: r.Serial, again: e.account.Away()}
	e.calls = append(e.calls, c)
	go e.run(c, r)
}

// run makes a call with a deadline of its own: a caller that hangs up must not
// look like a store that does not answer.
func (e *entry) run(c *call, r account.Request) {
	rep, err := e.link.lease(r, &c.sent)
	t, why := e.link.now(), store.WhyOf(err)
	if sent, ok := c.sentAt(); ok && e.link.life.Err() == nil {
		e.link.judge(account.Result{At: t, Started: sent, Why: why, Again: c.again})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.landLocked(c)
	if err == nil {
		e.account.Apply(t, c.started, r, rep, e.link.view())
		e.watchLocked()
	} else {
		e.account.Fail(t, r, why, e.link.view())
		e.link.strays.Store(true)
	}
	if !e.link.away.Load() && !e.account.Away() && e.account.Due(t) && e.account.Owes() {
		e.launchLocked()
	}
	e.tellLocked()
}

// watchLocked sees to it that slots that are not wanted any more reach the bucket again,
// also when no other request comes. Its timer ends when nothing is held.
func (e *entry) watchLocked() {
	if e.timer || !e.account.Watch() {
		return
	}
	e.timer = true
	time.AfterFunc(e.account.Interval(), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.timer = false
		if e.link.life.Err() != nil {
			return
		}
		if t := e.link.now(); e.account.Lull(t) && !e.link.away.Load() {
			e.launchLocked()
		}
		e.watchLocked()
	})
}
