package outbound

import (
	"context"
	"net/http"
	"time"
)

// Stop says why a failed call is not tried again. The list is closed, for metrics
// and logs.
type Stop uint8

// The reasons, in the order in which they are looked at.
const (
	Retrying     Stop = iota // it is
	NotRetryable             // the answer would be the same, or nobody waits for it
	ToldNotTo                // the server said so, or another hop has retried already
	LastAttempt              // the number of attempts is used up
	NoReplay                 // the body cannot be had again
	Unsafe                   // the server may have done it already, and doing it twice is not safe
	Disallowed               // Allow said no
	HintTooLong              // the server asks to stay away for longer than MaxHint
	PastDeadline             // the next attempt could not be sent before the deadline, or within MaxElapsed
	BudgetSpent              // too many retries already
)

// StopCount is the number of reasons, for arrays indexed by Stop.
const StopCount = int(BudgetSpent) + 1

var stopNames = [StopCount]string{
	"retrying", "not-retryable", "told-not-to", "last-attempt", "no-replay", "unsafe",
	"disallowed", "hint-too-long", "past-deadline", "budget-spent",
}

// String returns the reason's name in metrics and logs.
func (s Stop) String() string {
	if int(s) >= StopCount {
		return "unknown"
	}
	return stopNames[s]
}

// decide says whether the n-th attempt of a call begun at start, which ended in v, is
// followed by another, and after what wait. The budget comes last, because asking charges it.
func (t *retrier) decide(req *http.Request, s shared, v Verdict, err error, n int, start time.Time) (time.Duration, Stop) {
	if stop := t.mayRetry(req, v, err, n); stop != Retrying {
		return 0, stop
	}
	if v.Hinted && v.Hint > t.opts.MaxHint {
		return 0, HintTooLong
	}
	delay := t.backoff.delay(v, n)
	if t.opts.MaxElapsed > 0 && time.Since(start)+delay > t.opts.MaxElapsed || !inTime(req.Context(), s, delay) {
		return 0, PastDeadline
	}
	if !s.budget.Try(time.Now()) {
		return 0, BudgetSpent
	}
	return delay, Retrying
}

// mayRetry looks at everything but time and money.
func (t *retrier) mayRetry(req *http.Request, v Verdict, err error, n int) Stop {
	switch {
	case !retryable(v.Kind):
		return NotRetryable
	case v.Final:
		return ToldNotTo
	case n >= t.opts.Attempts:
		return LastAttempt
	case !replayable(req):
		return NoReplay
	case !v.Refused() && v.Kind != Conflict && !idempotent(req) && !(err != nil && neverLeft(err)):
		return Unsafe
	case t.opts.Allow != nil && !t.opts.Allow(req, v):
		return Disallowed
	}
	return Retrying
}

func retryable(k Kind) bool {
	return k == Throttled || k == Overloaded || k == Conflict || k == Transient
}

// inTime reports whether an attempt after delay can be sent before the deadline: a
// sleep that cannot end in an attempt only hides the answer from the caller.
func inTime(ctx context.Context, s shared, delay time.Duration) bool {
	if d, ok := ctx.Deadline(); ok && time.Until(d) <= delay {
		return false
	}
	return s.op == nil || s.pacer.fits(ctx, s.op, delay)
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
