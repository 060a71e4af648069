package grpcgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
)

// ClientOptions configure a [Client].
type ClientOptions struct {
	// Pacer is the ceiling that the calls contend for. It may be shared with other
	// connections, and with an outbound.Transport. It is needed.
	Pacer *pacer.Pacer
	// Key says what the quota of the server counts. Nil: the target of the connection is the
	// Space, and all methods are one operation.
	Key func(target, fullMethod string) ratelimit.Key
	// Attempts is how often a unary call is sent at most. Zero means once. What gRPC
	// itself sends again, by its service config, is charged but not decided here.
	Attempts int
	// Idempotent reports whether a call of a method may be repeated when the server may
	// have done it already. Nil: none may; refused calls may in any case.
	Idempotent func(fullMethod string) bool
	// Guard, if set, runs each attempt of a unary call: a circuit breaker, such as
	// func(ctx, method, call) error { return breaker.Run(call) }. An error of its own, given
	// without running the attempt, ends the call as [pacer.BreakerOpen].
	Guard func(ctx context.Context, fullMethod string, attempt func() error) error
}

// Client paces the calls that a gRPC client makes: each takes a token of the pacer and,
// where those are bounded, a slot; a throttle slows all of them down. Make one with
// [NewClient]; it is safe for concurrent use.
type Client struct{ options ClientOptions }

// NewClient validates o and returns a Client. Errors name the field.
func NewClient(o ClientOptions) (*Client, error) {
	switch {
	case o.Pacer == nil:
		return nil, errors.New("grpcgate: ClientOptions.Pacer is nil")
	case o.Attempts < 0:
		return nil, errors.New("grpcgate: ClientOptions.Attempts: must not be negative")
	}
	if o.Key == nil {
		o.Key = func(target, _ string) ratelimit.Key { return ratelimit.Key{Space: target} }
	}
	if o.Idempotent == nil {
		o.Idempotent = func(string) bool { return false }
	}
	o.Attempts = max(o.Attempts, 1)
	return &Client{o}, nil
}

// DialOptions are what [grpc.NewClient] needs of c: both interceptors, and the handler
// that sees the attempts which gRPC makes by itself.
func (c *Client) DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(c.Unary()),
		grpc.WithChainStreamInterceptor(c.Stream()),
		grpc.WithStatsHandler(resends{}),
	}
}

// Unary is the interceptor of calls with one request and one answer. It blocks until
// the call may be sent. A call that is not sent ends with a *[pacer.Refusal]; every
// other error is that of the last attempt.
func (c *Client) Unary() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		o := c.options.Pacer.Operation(c.options.Key(cc.Target(), method))
		o.StartCall()
		for n := 1; ; n++ {
			var trailer metadata.MD
			v, err := c.attempt(ctx, o, method, func(ctx context.Context) error {
				return invoke(ctx, method, req, reply, cc, append(slices.Clip(opts), grpc.Trailer(&trailer))...)
			}, &trailer)
			if err == nil || !c.again(ctx, o, method, v, n) {
				return err
			}
			o.CountRetry()
		}
	}
}

// attempt sends a call once and reports what came of it.
func (c *Client) attempt(ctx context.Context, o *pacer.Operation, method string, send func(context.Context) error, trailer *metadata.MD) (v verdict.Verdict, err error) {
	grant, err := o.Acquire(ctx)
	if err != nil {
		return verdict.OfError(err), err
	}
	sent := false
	attempt := func() error {
		sent = true
		return send(watched(ctx, o))
	}
	if c.options.Guard == nil {
		err = attempt()
	} else {
		err = c.options.Guard(ctx, method, attempt)
	}
	if !sent {
		grant.Undo()
		grant.Release(verdict.LocalRefusal)
		err = o.Refuse(pacer.BreakerOpen, err)
		return verdict.OfError(err), err
	}
	v = verdictOf(err, *trailer)
	o.Report(ctx, v)
	grant.Release(v.Kind)
	return v, err
}

// firstBackoff is the longest pause before a second attempt that the server said
// nothing about; it doubles with each.
const firstBackoff = 50 * time.Millisecond

// again reports whether the n-th attempt is followed by another, when it is time for
// it. After a throttle it is the pacer that makes the next attempt wait.
func (c *Client) again(ctx context.Context, o *pacer.Operation, method string, v verdict.Verdict, n int) bool {
	passing := v.Refused() || c.options.Idempotent(method) && (v.Kind == verdict.Transient || v.Kind == verdict.Conflict)
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
