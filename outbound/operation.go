package outbound

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

// operation is what all callers of one key share: the limiter's bucket, the
// adaptive law, the pause, and the line of those who wait.
//
// A token is taken at the moment of sending, never reserved ahead: so a pause or a
// cut reaches everybody in line at once, the order is kept, and in every window at
// most burst + rate·window calls leave, whatever happened before it. Whoever waits
// is woken by one timer per operation, which lives while there is a line.
type operation struct {
	key     ratelimit.Key
	svc     *service
	limiter ratelimit.Limiter
	shared  ratelimit.Feedback // set when the limiter adapts by itself
	budget  *RetryBudget
	counts  counts

	mu      sync.Mutex
	line    line
	driving bool      // somebody serves the line, or the timer will
	nextAt  time.Time // when the last refusal said the next token comes
	paused  time.Time
	used    time.Time
	debt    int // sends that could not be paid for when they happened
	law     pace
	bucket  bucket
	base    float64 // R
	burst   float64
	meter   meter
}

// counts are totals since the start.
type counts struct {
	attempts, retries, resends, cuts, pauses atomic.Uint64
	kinds                                    [KindCount]atomic.Uint64
	refused                                  [WhyCount]atomic.Uint64
	inFlight                                 atomic.Int64
}

// no is why a token was not to be had.
type no struct {
	why  Why
	wait time.Duration // until the next try makes sense
	hard bool          // waiting does not help
}

// ask takes one token at now from the law and the limiter, or says why not.
func (o *operation) ask(ctx context.Context, now time.Time) (Pass, no, bool) {
	held, refusal, ok := o.askLaw(now)
	if !ok {
		return Pass{}, refusal, false
	}
	d := o.limiter.Take(ctx, now, o.key, 1, 0)
	if d.OK {
		return Pass{o: o, decision: d, held: held}, no{}, true
	}
	if held {
		o.giveBack()
	}
	return Pass{}, o.refused(now, d), false
}

// askLaw asks the pause and, while the law holds the rate back, its bucket. held
// says that a token of the bucket was taken.
func (o *operation) askLaw(now time.Time) (held bool, _ no, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used = now
	if left := o.pauseLeft(now); left > 0 {
		return false, no{why: Paused, wait: left}, false
	}
	if !o.law.active(now) {
		o.meter.add(now)
		return false, no{}, true
	}
	m := o.law.inForce(now)
	wait, ok := o.bucket.take(now, m*o.base, max(1, m*o.burst))
	if !ok {
		o.nextAt = now.Add(wait)
		return false, no{why: WaitTooLong, wait: wait}, false
	}
	o.meter.add(now)
	return true, no{}, true
}

func (o *operation) giveBack() {
	o.mu.Lock()
	o.bucket.give()
	o.mu.Unlock()
}

// refused translates a limiter's refusal and remembers when it said to come back.
func (o *operation) refused(now time.Time, d ratelimit.Decision) no {
	switch {
	case d.Never:
		return no{why: NeverFits, hard: true}
	case d.Source == ratelimit.SourceClosed:
		return no{why: StoreAway, wait: d.Wait, hard: true}
	}
	wait := max(d.Wait, minWait)
	o.mu.Lock()
	o.nextAt = now.Add(wait)
	o.mu.Unlock()
	return no{why: WaitTooLong, wait: wait}
}

// minWait keeps a limiter that refuses without a hint from being asked in a loop.
const minWait = 50 * time.Microsecond

// pauseLeft returns how long everybody stays away yet.
func (o *operation) pauseLeft(now time.Time) time.Duration {
	return max(o.paused.Sub(now), o.svc.pauseLeft(now), 0)
}

// rateInForce returns the limiter's rate and burst, and what the law leaves of the
// rate. It calls the limiter and must not be called with the lock held.
func (o *operation) rateInForce(now time.Time) (inForce rate.Limit, p ratelimit.Policy) {
	p = o.limiter.Policy(o.key)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.law.active(now) {
		return p.Rate, p
	}
	return min(p.Rate, rate.Limit(o.law.inForce(now)*o.base)), p
}

// slow makes everybody who shares the operation slow down after a verdict that
// asks for it. pause is the bounded hint, zero for none. It reports whether the
// rate was cut and whether a new pause began.
func (o *operation) slow(now time.Time, factor float64, pause time.Duration) (cut, paused bool) {
	p := o.limiter.Policy(o.key)
	if o.shared != nil && factor < 1 {
		o.shared.Throttled(now, o.key, pause, factor)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	end := now.Add(pause)
	if pause > 0 && end.After(o.paused) {
		end = end.Add(jitter(pause))
		o.paused, paused = end, true
	}
	if o.shared == nil && factor < 1 {
		cut = o.cutLocked(now, factor, pause, p)
		if cut {
			o.bucket.reset(end, now)
		}
	}
	if cut || paused {
		o.dismissLocked(now, p)
	}
	return cut, paused
}

// cutLocked applies the law. A rate that nobody configured is the one measured when
// the server first objected.
func (o *operation) cutLocked(now time.Time, factor float64, pause time.Duration, p ratelimit.Policy) bool {
	top := knownTop
	if p.Rate == rate.Inf {
		top = measuredTop
		if !o.law.active(now) {
			o.base = max(o.meter.perSecond(now), minMeasured)
			o.burst = max(1, o.base/10)
		}
	} else {
		o.base, o.burst = float64(p.Rate), float64(p.Burst)
	}
	return o.law.cut(now, factor, top, pause)
}

// minMeasured, in calls per second, is the least that counts as measured: a server
// that refused one lone call has not told us to creep.
const minMeasured = 10

// dismissLocked sends away those in line whose turn will now come too late. They
// learn it at once, not at the end of a wait that could not end well.
func (o *operation) dismissLocked(now time.Time, p ratelimit.Policy) {
	r := o.lawRate(now, p)
	o.line.each(func(place int, w *waiter) {
		wait := o.predict(now, place, r, p.Burst)
		if !now.Add(wait).Before(w.until) {
			o.line.settle(w, Pass{}, o.tooLong(now, wait, w.until))
		}
	})
}

// lawRate is the rate in force, with the lock held.
func (o *operation) lawRate(now time.Time, p ratelimit.Policy) float64 {
	if !o.law.active(now) {
		return float64(p.Rate)
	}
	return min(float64(p.Rate), o.law.inForce(now)*o.base)
}

// predict estimates when somebody with the given number of calls ahead would be
// sent: the pause, or the wait for the next token, then one token each. After a
// pause without a cut the bucket has filled.
func (o *operation) predict(now time.Time, ahead int, r float64, burst int) time.Duration {
	wait := max(o.pauseLeft(now), o.nextAt.Sub(now), 0)
	if ahead == 0 || math.IsInf(r, 1) || r >= float64(rate.Inf) {
		return wait
	}
	if !o.law.active(now) {
		ahead = max(0, ahead-int(min(float64(burst), o.pauseLeft(now).Seconds()*r)))
	}
	return wait + time.Duration(min(float64(ahead)/r, farthest.Seconds())*float64(time.Second))
}

// tooLong makes the refusal of a wait that would end too late.
func (o *operation) tooLong(now time.Time, wait time.Duration, until time.Time) *Refusal {
	why := WaitTooLong
	if !now.Add(o.pauseLeft(now)).Before(until) {
		why = Paused
	}
	return &Refusal{Why: why, Wait: wait}
}
