package outbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// RetryOptions configures when a call is tried again. The zero value is the
// default.
type RetryOptions struct {
	// Attempts is how often a call is sent at most, the first time included. Zero
	// means 3, 1 means no retry.
	Attempts int

	// MaxHint is the longest hint that is waited for. Zero means 60 s. A call that
	// is asked to stay away for longer, or beyond its deadline, returns the response
	// at once; the hint is not shortened.
	MaxHint time.Duration

	// MinBackoff is the shortest wait before another attempt, whatever the server
	// says. Zero means 10 ms.
	MinBackoff time.Duration

	// MaxBackoff caps the backoff when the server says nothing. Zero means 20 s.
	MaxBackoff time.Duration

	// MaxElapsed ends the retries of a call: no attempt begins later than this after
	// the call did. Zero means that only the deadline and MaxWait bound them.
	MaxElapsed time.Duration

	// Allow, if set, has a say after the rules: it may refuse a retry, never add
	// one. It must not touch the request.
	Allow func(*http.Request, verdict.Verdict) bool
}

const (
	defaultAttempts = 3
	defaultMaxHint  = time.Minute
)

func (o RetryOptions) withDefaults() (RetryOptions, error) {
	o.Attempts = cmp.Or(o.Attempts, defaultAttempts)
	o.MaxHint = cmp.Or(o.MaxHint, defaultMaxHint)
	o.MinBackoff = cmp.Or(o.MinBackoff, defaultMinBackoff)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, defaultMaxBackoff)
	err := errors.Join(
		positive("Retry.Attempts", o.Attempts),
		positive("Retry.MaxHint", o.MaxHint),
		positive("Retry.MinBackoff", o.MinBackoff),
		positive("Retry.MaxBackoff", o.MaxBackoff),
	)
	if o.MaxElapsed < 0 {
		err = errors.Join(err, fmt.Errorf("outbound: Retry.MaxElapsed = %v: must not be negative", o.MaxElapsed))
	}
	if o.MaxBackoff < o.MinBackoff {
		err = errors.Join(err, fmt.Errorf("outbound: Retry.MaxBackoff = %v: must not be below MinBackoff %v", o.MaxBackoff, o.MinBackoff))
	}
	return o, err
}

// retrier sends a call again where that is safe (the method is idempotent, or the
// request has an Idempotency-Key, or the server refused before working on it, or
// nothing was sent), possible (the body can be had again through GetBody), allowed
// (attempts, budget) and of use (it can be sent before the deadline). Otherwise the
// last answer is returned as it came, with its body whole.
type retrier struct {
	opts     RetryOptions
	backoff  backoff
	attempts *attempter
	watch    watcher
}

// call makes the call.
func (t *retrier) call(req *http.Request, o *pacer.Operation) (*http.Response, error) {
	start, out := o.StartCall(), req
	for n := 1; ; n++ {
		resp, v, err := t.attempts.do(out, o)
		if v.Kind == verdict.OK {
			return resp, err
		}
		delay, stop := t.decide(req, o, v, err, n, start)
		if stop != "" {
			t.watch.stopped(o.Key(), v, n, stop)
			return resp, err
		}
		t.watch.retried(o.Key(), v, n, delay)
		if resp != nil {
			discard(resp)
		}
		if err := sleep(req.Context(), delay); err != nil {
			return nil, err
		}
		if out, err = again(req); err != nil {
			return nil, err
		}
		o.CountRetry()
	}
}

// again returns a request like req with a fresh body. The first attempt closed the
// old one.
func again(req *http.Request) (*http.Request, error) {
	if req.GetBody == nil {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("outbound: body for another attempt: %w", err)
	}
	out := req.WithContext(req.Context())
	out.Body = body
	return out, nil
}

// sleep waits for d, or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func positive[T int | time.Duration](field string, v T) error {
	if v <= 0 {
		return fmt.Errorf("outbound: %s = %v: must be positive", field, v)
	}
	return nil
}
