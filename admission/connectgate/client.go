package connectgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"connectrpc.com/connect"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
)

// ClientOptions configure the interceptor that [NewClient] returns.
type ClientOptions struct {
	// Pacer is the ceiling that the calls contend for. It may be shared with other
	// clients, and with an outbound.Transport. It is needed.
	Pacer *pacer.Pacer
	// Key says what the quota of the server counts. Nil: the host of the server is the
	// Space, and all procedures are one operation.
	Key func(host, procedure string) ratelimit.Key
	// Attempts is how often a unary call is sent at most. Zero means once.
	Attempts int
	// Idempotent reports whether a call may be repeated when the server may have done it
	// already. Nil: where the proto file says so (idempotency_level). Refused calls may
	// in any case.
	Idempotent func(connect.Spec) bool
	// Guard, if set, runs each attempt of a unary call: a circuit breaker, such as
	// func(ctx, spec, call) error { return breaker.Run(call) }. An error of its own, given
	// without running the attempt, ends the call as [pacer.BreakerOpen].
	Guard func(ctx context.Context, spec connect.Spec, attempt func() error) error
}

// Client paces the calls that a connect client makes, in any of its protocols: each takes
// a token of the pacer and, where those are bounded, a slot; a throttle slows all of them
// down. A call that is not sent ends with a *[pacer.Refusal]. Make one with [NewClient];
// it is safe for concurrent use, and does nothing in a handler. The HTTP client below must
// not pace as well.
type Client struct{ options ClientOptions }

// NewClient validates o and returns a Client, for connect.WithInterceptors. Errors name
// the field.
func NewClient(o ClientOptions) (*Client, error) {
	switch {
	case o.Pacer == nil:
		return nil, errors.New("connectgate: ClientOptions.Pacer is nil")
	case o.Attempts < 0:
		return nil, errors.New("connectgate: ClientOptions.Attempts: must not be negative")
	}
	if o.Key == nil {
		o.Key = func(host, _ string) ratelimit.Key { return ratelimit.Key{Space: host} }
	}
	if o.Idempotent == nil {
		o.Idempotent = func(s connect.Spec) bool { return s.IdempotencyLevel != connect.IdempotencyUnknown }
	}
	o.Attempts = max(o.Attempts, 1)
	return &Client{o}, nil
}

// WrapUnary paces calls with one request and one answer. It blocks until the call may be
// sent.
func (c *Client) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (reply connect.AnyResponse, err error) {
		spec := req.Spec()
		if !spec.IsClient {
			return next(ctx, req)
		}
		o := c.operation(req.Peer(), spec)
		o.StartCall()
		for n := 1; ; n++ {
			v, err := c.attempt(ctx, o, spec, func() (err error) {
				reply, err = next(ctx, req)
				return err
			})
			if err == nil || !c.again(ctx, o, spec, v, n) {
				return reply, err
			}
			o.CountRetry()
		}
	}
}

func (c *Client) operation(peer connect.Peer, spec connect.Spec) *pacer.Operation {
	return c.options.Pacer.Operation(c.options.Key(peer.Addr, spec.Procedure))
}

// attempt sends a call once and reports what came of it.
func (c *Client) attempt(ctx context.Context, o *pacer.Operation, spec connect.Spec, send func() error) (v verdict.Verdict, err error) {
	grant, err := o.Acquire(ctx)
	if err != nil {
		return verdict.OfError(err), err
	}
	sent := false
	attempt := func() error {
		sent = true
		return send()
	}
	if c.options.Guard == nil {
		err = attempt()
	} else {
		err = c.options.Guard(ctx, spec, attempt)
	}
	if !sent {
		grant.Undo()
		grant.Release(verdict.LocalRefusal)
		err = o.Refuse(pacer.BreakerOpen, err)
		return verdict.OfError(err), err
	}
	v = verdictOf(err)
	o.Report(ctx, v)
	grant.Release(v.Kind)
	return v, err
}

// firstBackoff is the longest pause before a second attempt that the server said
// nothing about; it doubles with each.
const firstBackoff = 50 * time.Millisecond

// again reports whether the n-th attempt is followed by another, when it is time for
// it. After a throttle it is the pacer that makes the next attempt wait.
func (c *Client) again(ctx context.Context, o *pacer.Operation, spec connect.Spec, v verdict.Verdict, n int) bool {
	passing := v.Refused() || c.options.Idempotent(spec) && (v.Kind == verdict.Transient || v.Kind == verdict.Conflict)
	delay := rand.N(firstBackoff << min(n-1, 8))
	if !passing || v.Final || n >= c.options.Attempts || !o.CanSend(ctx, max(delay, v.Hint)) || !o.TakeRetry() {
		return false
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
