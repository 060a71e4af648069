package outbound

import (
	"context"
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
	driving bool // somebody serves the line, or the timer will
	timer   *time.Timer
	armed   time.Time // when the timer strikes
	nextAt  time.Time // when the last refusal said the next token comes
	paused  pauses
	used    time.Time
	debt    int // sends that could not be paid for when they happened
	law     pace
	bucket  bucket
	base    float64 // R
	burst   float64
	meter   meter
	share   share
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

// ask takes one token at now, for a call of the given level, from the law and the
// limiter, or says why not.
func (o *operation) ask(ctx context.Context, now time.Time, level int) (Pass, no, bool) {
	held, refusal, ok := o.askLaw(now, level)
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
func (o *operation) askLaw(now time.Time, level int) (held bool, _ no, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.used = now
	if left := o.pauseLeft(now, level); left > 0 {
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

// pauseLeft returns how long calls of the given level stay away yet. It is never
// longer than for a lower level.
func (o *operation) pauseLeft(now time.Time, level int) time.Duration {
	return max(o.paused[level].Sub(now), o.svc.pauseLeft(now, level), 0)
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
