package outbound

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// Stop says why a failed call is not tried again, by its name in metrics and logs. It is
// empty where the call is tried again. The list is closed: Stops has all of it.
type Stop string

// The reasons, in the order in which they are looked at. A user compares with the name.
const (
	stopNotRetryable  Stop = "not-retryable"  // the answer would be the same, or the caller is gone
	stopServerForbids Stop = "server-forbids" // the server said so, or another hop has retried already
	stopLastAttempt   Stop = "last-attempt"   // the number of attempts is used up
	stopNoReplay      Stop = "no-replay"      // the body cannot be had again
	stopUnsafe        Stop = "unsafe"         // the server may have done it already, and doing it twice is not safe
	stopDisallowed    Stop = "disallowed"     // Allow said no
	stopHintTooLong   Stop = "hint-too-long"  // the server asks to stay away for longer than MaxHint
	stopPastDeadline  Stop = "past-deadline"  // the next attempt could not be sent before the deadline, or within MaxElapsed

	StopBudgetSpent Stop = "budget-spent" // too many retries already
)

// Stops returns every reason, in the order in which they are looked at.
func Stops() []Stop {
	return []Stop{
		stopNotRetryable, stopServerForbids, stopLastAttempt, stopNoReplay, stopUnsafe,
		stopDisallowed, stopHintTooLong, stopPastDeadline, StopBudgetSpent,
	}
}

// decide says whether the n-th attempt of a call begun at start, which ended in v, is
// followed by another, and after what wait. The budget comes last, because asking charges it.
func (t *retrier) decide(req *http.Request, o *pacer.Operation, v verdict.Verdict, err error, n int, start time.Time) (time.Duration, Stop) {
	if stop := t.mayRetry(req, v, err, n); stop != "" {
		return 0, stop
	}
	if v.Hinted && v.Hint > t.opts.MaxHint {
		return 0, stopHintTooLong
	}
	delay := t.backoff.delay(v, n, left(req.Context()))
	if t.opts.MaxElapsed > 0 && time.Since(start)+delay > t.opts.MaxElapsed || !inTime(req.Context(), o, delay) {
		return 0, stopPastDeadline
	}
	if !o.TakeRetry() {
		return 0, StopBudgetSpent
	}
	return delay, ""
}

// mayRetry looks at everything but time and money.
func (t *retrier) mayRetry(req *http.Request, v verdict.Verdict, err error, n int) Stop {
	switch {
	case !retryable(v.Kind):
		return stopNotRetryable
	case v.Final:
		return stopServerForbids
	case n >= t.opts.Attempts:
		return stopLastAttempt
	case !replayable(req):
		return stopNoReplay
	case !untouched(v, err) && !idempotent(req):
		return stopUnsafe
	case t.opts.Allow != nil && !t.opts.Allow(req, v):
		return stopDisallowed
	}
	return ""
}

func retryable(k verdict.Kind) bool {
	return k == verdict.Throttled || k == verdict.Overloaded || k == verdict.Conflict || k == verdict.Transient
}

// inTime reports whether an attempt after delay can be sent before the deadline: a
// sleep that cannot end in an attempt only hides the answer from the caller.
func inTime(ctx context.Context, o *pacer.Operation, delay time.Duration) bool {
	if d, ok := ctx.Deadline(); ok && time.Until(d) <= delay {
		return false
	}
	return o.CanSend(ctx, delay)
}

// untouched reports whether the server did nothing with the attempt: it answered that
// it refused, or nothing was sent. A connection reset for the sake of the rate is no
// such proof.
func untouched(v verdict.Verdict, err error) bool {
	if err != nil {
		return verdict.NeverLeft(err) || v.Kind == verdict.Conflict
	}
	return v.Refused() || v.Kind == verdict.Conflict
}

func replayable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// idempotent reports whether sending req twice is as good as once: by its method,
// or because it has a key by which the server knows the second.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace,
		http.MethodPut, http.MethodDelete:
		return true
	}
	_, a := req.Header["Idempotency-Key"]
	_, b := req.Header["X-Idempotency-Key"]
	return a || b
}

// backoff is how long to wait before the next attempt when the server did not say.
//
// It is full jitter: a uniform draw up to base·2^(n−1), capped before the draw, on
// top of a small floor that even a lucky draw and a Retry-After of zero respect.
// The base depends on what went wrong: a lost connection is worth another try soon,
// a throttle is not, and a gate that sheds load speaks for all callers.
type backoff struct {
	floor, ceiling time.Duration
	base           [verdict.KindCount]time.Duration
	shed           time.Duration // base for an overload that a Headgate gate reported
}

const (
	defaultMinBackoff = 10 * time.Millisecond
	defaultMaxBackoff = 20 * time.Second

	baseTransient = 50 * time.Millisecond
	baseConflict  = 50 * time.Millisecond
	baseOverload  = 500 * time.Millisecond
	baseThrottle  = time.Second
	baseShed      = 2 * time.Second

	minThrottle = 100 * time.Millisecond // after a throttle without a hint
)

func newBackoff(floor, ceiling time.Duration) backoff {
	return backoff{
		floor: floor, ceiling: ceiling, shed: baseShed,
		base: [verdict.KindCount]time.Duration{
			verdict.Throttled: baseThrottle, verdict.Overloaded: baseOverload,
			verdict.Conflict: baseConflict, verdict.Transient: baseTransient,
		},
	}
}

// delay returns the wait after the n-th attempt, which ended in v, of a call that has
// left before its deadline. A hint is never shortened. A throttle without one is never
// answered at once.
func (b *backoff) delay(v verdict.Verdict, n int, left time.Duration) time.Duration {
	d := b.floor + full(b.limit(v, n))
	switch {
	case v.Hinted:
		d = max(d, v.Hint+full(spread(v.Hint, left)))
	case v.Kind == verdict.Throttled:
		d = max(d, minThrottle)
	}
	return d
}

// limit returns the longest backoff after the n-th attempt.
func (b *backoff) limit(v verdict.Verdict, n int) time.Duration {
	base := b.base[v.Kind]
	if v.Kind == verdict.Overloaded && v.Reason.Refused() {
		base = b.shed
	}
	for ; n > 1 && base < b.ceiling; n-- {
		base *= 2
	}
	return min(base, b.ceiling)
}

// spread is how far the calls that were given the same hint return from each other: at
// most half of what the hint leaves before the deadline.
func spread(hint, left time.Duration) time.Duration {
	return min(pacer.Spread(hint), max(left-hint, 0)/2)
}

// left returns how long a call has before its deadline.
func left(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return time.Until(d)
	}
	return math.MaxInt64
}

// full draws from [0, limit).
func full(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}
