package pacer

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Operation is what all callers of one key share: the limiter's bucket, the adaptive
// law, the pause, the line of calls that wait, and the retry budget.
//
// A token is taken at the moment of sending, never reserved ahead: so a pause or a
// cut reaches all calls in line at once, the order is kept, and in every window at
// most burst + rate·window calls leave, whatever happened before it.
type Operation struct {
	pacer   *Pacer
	key     ratelimit.Key
	svc     *service
	limiter ratelimit.Limiter
	shared  ratelimit.Feedback // to be told of throttles
	adapts  bool               // the limiter: its rate and pause are enforced by itself
	retries *retryBudget
	counts  counts

	mu        sync.Mutex
	line      line
	nextAt    time.Time // when the last refusal said the next token comes
	paused    pauses
	used      time.Time
	law       law
	bucket    bucket
	base      float64 // R
	burst     float64
	spread    time.Duration // of the calls that the last pause held back
	meter     meter
	overloads overloadShare
}

// counts are totals since the start.
type counts struct {
	attempts, retries, resends, cuts, pauses atomic.Uint64
	kinds                                    [verdict.KindCount]atomic.Uint64
	refused                                  [ReasonCount]atomic.Uint64
	inFlight                                 atomic.Int64
}

// Key returns the operation's key.
func (o *Operation) Key() ratelimit.Key { return o.key }

// Stats returns the numbers in force and the totals.
func (o *Operation) Stats() OperationStats { return statsOf(o, time.Now()) }

// Grant is leave to send one call: a token, and a slot where calls in flight are
// bounded. It is a value; the zero Grant holds nothing.
type Grant struct {
	op       *Operation
	decision ratelimit.Decision
	lawToken bool // a token of the law's bucket was taken too
	slot     queue.Grant
}

// Acquire returns when a call may be sent. It blocks until the call's turn comes: by
// the level in ctx (see package priority), then in order of arrival. It returns a
// [*Refusal] at once, without waiting, when the turn would come after ctx's deadline
// or after MaxWait, and later if a pause or a cut makes that so; the context's error
// when ctx ends. Either way nothing was taken.
//
// The grant must be released exactly once.
func (o *Operation) Acquire(ctx context.Context) (Grant, error) {
	if ctx.Err() != nil {
		return Grant{}, context.Cause(ctx)
	}
	g, err := o.acquire(ctx, time.Now())
	if err != nil {
		return Grant{}, o.note(err)
	}
	o.counts.attempts.Add(1)
	o.counts.inFlight.Add(1)
	return g, nil
}

// acquire waits until token and slot are both to be had, and never holds one while it
// waits for the other. A call that paid its token while it waits for a slot would be
// part of a hidden burst: when a stalled server comes back, all of them would leave
// at once, whatever the rate. And a slot held by a call that waits for the rate of
// one operation is missing in another.
func (o *Operation) acquire(ctx context.Context, arrived time.Time) (Grant, error) {
	longest, level := o.pacer.opts.MaxWait, levelOf(ctx)
	g, err := o.line.wait(ctx, arrived, level, longest)
	if err != nil || o.svc.slots == nil || o.tryTakeSlot(ctx, &g) {
		return g, err
	}
	for until := arrived.Add(longest); ; {
		var ok bool
		if g, ok, err = o.slotThenToken(ctx, level, until); ok || err != nil {
			return g, err
		}
		now := time.Now()
		if g, err = o.line.wait(ctx, now, level, until.Sub(now)); err != nil || o.tryTakeSlot(ctx, &g) {
			return g, err
		}
	}
}

// tryTakeSlot adds a slot to g, or gives g's token back.
func (o *Operation) tryTakeSlot(ctx context.Context, g *Grant) bool {
	now := time.Now()
	slot, err := o.svc.slots.TryAcquire(now, ticketOf(ctx, 0))
	if err != nil {
		g.returnToken(now)
		return false
	}
	g.slot = slot
	return true
}

// slotThenToken waits for a slot and takes a token if one is to be had at once;
// otherwise it gives the slot back.
func (o *Operation) slotThenToken(ctx context.Context, level int, until time.Time) (Grant, bool, error) {
	now, slots := time.Now(), o.svc.slots
	slot, err := slots.Acquire(ctx, now, ticketOf(ctx, max(until.Sub(now), 1)))
	switch {
	case err != nil && ctx.Err() != nil:
		return Grant{}, false, context.Cause(ctx)
	case err != nil:
		return Grant{}, false, &Refusal{Reason: NoSlot, Err: err}
	}
	if o.line.vacant(level) {
		if g, _, ok := o.ask(ctx, time.Now(), level); ok {
			g.slot = slot
			return g, true, nil
		}
	}
	slots.Release(slot, shed.Ignored)
	return Grant{}, false, nil
}

// Undo returns the token: the call did not leave. Call it at most once, before
// Release.
func (g Grant) Undo() {
	if g.op == nil {
		return
	}
	g.op.counts.attempts.Add(^uint64(0))
	g.returnToken(time.Now())
}

func (g Grant) returnToken(now time.Time) {
	g.decision.Undo(now)
	if g.lawToken {
		g.op.giveBack()
	}
}

// Release ends the call: it gives the slot back, and tells a limit that learns what
// the call came to.
func (g Grant) Release(k verdict.Kind) {
	if g.op == nil {
		return
	}
	g.op.counts.inFlight.Add(-1)
	if slots := g.op.svc.slots; slots != nil {
		slots.Release(g.slot, outcomeOf(k))
	}
}

// denial is why a token was not to be had.
type denial struct {
	reason Reason
	wait   time.Duration // until the next try makes sense
	final  bool          // waiting does not help
}

// ask takes one token at now, for a call of the given level, from the law and the
// limiter, or says why not.
func (o *Operation) ask(ctx context.Context, now time.Time, level int) (Grant, denial, bool) {
	lawToken, refusal, ok := o.askLaw(now, level)
	if !ok {
		return Grant{}, refusal, false
	}
	d := o.limiter.Take(ctx, now, o.key, 1, 0)
	if d.OK {
		return Grant{op: o, decision: d, lawToken: lawToken}, denial{}, true
	}
	if lawToken {
		o.giveBack()
	}
	return Grant{}, o.refused(now, d), false
}

// askLaw asks the pause and, while the law holds the rate back, its bucket. lawToken
// says that a token of the bucket was taken.
func (o *Operation) askLaw(now time.Time, level int) (lawToken bool, _ denial, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used = now
	if left := o.pauseLeft(now, level); left > 0 {
		return false, denial{reason: Paused, wait: left}, false
	}
	if !o.law.active(now) {
		o.meter.add(now)
		return false, denial{}, true
	}
	m := o.law.inForce(now)
	wait, ok := o.bucket.take(now, rampUp(m*o.base, o.sincePause(now, level), o.spread), max(1, m*o.burst))
	if !ok {
		o.nextAt = now.Add(wait)
		return false, denial{reason: WaitTooLong, wait: wait}, false
	}
	o.meter.add(now)
	return true, denial{}, true
}

func (o *Operation) giveBack() {
	o.mu.Lock()
	o.bucket.give()
	o.mu.Unlock()
}

// refused translates a limiter's refusal and remembers when it said to come back.
func (o *Operation) refused(now time.Time, d ratelimit.Decision) denial {
	switch {
	case d.Never:
		return denial{reason: NotAdmissible, final: true}
	case d.Source == ratelimit.SourceClosed:
		return denial{reason: LimiterUnavailable, wait: d.Wait, final: true}
	}
	wait := max(d.Wait, minWait)
	o.mu.Lock()
	o.nextAt = now.Add(wait)
	o.mu.Unlock()
	return denial{reason: WaitTooLong, wait: wait}
}

// minWait keeps a limiter that refuses without a hint from being asked in a loop.
const minWait = 50 * time.Microsecond

// pauseLeft returns how long calls of the given level stay away yet. It is never
// longer than for a lower level.
func (o *Operation) pauseLeft(now time.Time, level int) time.Duration {
	return max(-o.sincePause(now, level), 0)
}

// sincePause returns how long ago the level's last pause ended; negative while it lasts.
func (o *Operation) sincePause(now time.Time, level int) time.Duration {
	return -max(o.paused[level].Sub(now), o.svc.pauseLeft(now, level))
}

// rateInForce returns what the law leaves of the limiter's rate, with the lock held.
func (o *Operation) rateInForce(now time.Time, p ratelimit.Policy) float64 {
	if !o.law.active(now) {
		return float64(p.Rate)
	}
	return min(float64(p.Rate), o.law.inForce(now)*o.base)
}

// predict estimates when a call of a level, with the given number of calls ahead,
// would be sent: the pause, or the wait for the next token, then one token each.
// After a pause without a cut the bucket has filled. The lock is held.
func (o *Operation) predict(now time.Time, level, ahead int, r float64, burst int) time.Duration {
	wait := max(o.pauseLeft(now, level), o.nextAt.Sub(now), 0)
	if ahead == 0 || math.IsInf(r, 1) || r >= float64(rate.Inf) {
		return wait
	}
	switch {
	case !o.law.active(now):
		ahead = max(0, ahead-int(min(float64(burst), o.pauseLeft(now, level).Seconds()*r)))
	case r > slowRate:
		rest := (o.spread - max(o.sincePause(now, level), 0)).Seconds()
		wait += time.Duration(min(max(rest, 0)*2/3, float64(ahead)/slowRate) * float64(time.Second))
	}
	return wait + time.Duration(min(float64(ahead)/r, farthest.Seconds())*float64(time.Second))
}

// farthest bounds a prediction.
const farthest = 10 * 365 * 24 * time.Hour

// tooLong makes the refusal of a wait that would end too late.
func (o *Operation) tooLong(now time.Time, level int, wait time.Duration, until time.Time) *Refusal {
	reason := WaitTooLong
	if !now.Add(o.pauseLeft(now, level)).Before(until) {
		reason = Paused
	}
	return &Refusal{Reason: reason, Wait: wait}
}
