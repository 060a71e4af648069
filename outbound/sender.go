package outbound

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// sender is the last part before the base: it makes the copy of the request that
// the base may do with as it likes, tells the server how much time is left and how
// much the call matters, and bounds the attempt.
type sender struct {
	base     http.RoundTripper
	timeout  time.Duration // zero: none
	deadline string        // header fields in canonical form; empty: none
	level    string
}

// RoundTrip sends a copy of req.
func (t *sender) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.timeout == 0 {
		out := req.WithContext(req.Context())
		t.prepare(out)
		return t.base.RoundTrip(out)
	}
	a := &attempt{}
	ctx, cancel := context.WithCancelCause(req.Context())
	a.cancel, a.body.held = cancel, a
	out := req.WithContext(ctx)
	t.prepare(out)
	timer := time.AfterFunc(t.timeout, a.strike)
	resp, err := t.base.RoundTrip(out)
	inTime := timer.Stop()
	return a.finish(ctx, resp, err, inTime)
}

// prepare gives out a header of its own, and the fields that speak of this attempt.
// They are set over what came in: a proxy that passes its caller's deadline on
// would promise time that is spent.
func (t *sender) prepare(out *http.Request) {
	out.Header = out.Header.Clone()
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if t.deadline != "" {
		if left, ok := t.left(out.Context()); ok {
			out.Header[t.deadline] = []string{strconv.FormatInt(max(left.Milliseconds(), 1), 10)}
		}
	}
	if t.level != "" {
		if l, ok := priority.FromContext(out.Context()); ok {
			out.Header[t.level] = []string{l.String()}
		}
	}
}

// left returns how long this attempt may take, and whether anything bounds it.
func (t *sender) left(ctx context.Context) (time.Duration, bool) {
	d, ok := ctx.Deadline()
	if !ok {
		return t.timeout, t.timeout > 0
	}
	left := time.Until(d)
	if t.timeout > 0 {
		left = min(left, t.timeout)
	}
	return left, true
}

// attempt is one attempt with a time limit. The limit is for the answer's header:
// how long a body may take is the caller's affair, and its context's.
type attempt struct {
	body   heldBody
	cancel context.CancelCauseFunc
}

func (a *attempt) strike() { a.cancel(errAttemptTimeout) }
func (a *attempt) end()    { a.cancel(nil) }

func (a *attempt) finish(ctx context.Context, resp *http.Response, err error, inTime bool) (*http.Response, error) {
	if err == nil && inTime {
		hold(resp, &a.body)
		return resp, nil
	}
	if err == nil { // the header came as time ran out: its body is cut off already
		_ = resp.Body.Close()
	}
	if err == nil || context.Cause(ctx) == errAttemptTimeout {
		err = errAttemptTimeout
	}
	a.cancel(nil)
	return nil, err
}

// errAttemptTimeout ends an attempt that took too long. It is not the caller's
// deadline, and another attempt may follow.
var errAttemptTimeout error = attemptTimeout{}

type attemptTimeout struct{}

func (attemptTimeout) Error() string { return "outbound: attempt timed out" }
func (attemptTimeout) Timeout() bool { return true }
