package grpcgate

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/headgate-go/headgate/outbound/pacer"
)

// Stream is the interceptor of all other calls; see [Client.Unary]. A stream holds its
// slot until it ends, and is never sent again.
func (c *Client) Stream() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		o := c.options.Pacer.Operation(c.options.Key(cc.Target(), method))
		o.StartCall()
		grant, err := o.Acquire(ctx)
		if err != nil {
			return nil, err
		}
		s := &pacedStream{ctx: ctx, operation: o, grant: grant, answers: desc.ServerStreams}
		s.ClientStream, err = streamer(watched(ctx, o), desc, cc, method, append(slices.Clip(opts), grpc.OnFinish(s.finished))...)
		if err != nil {
			s.end(err, nil)
			return nil, err
		}
		return s, nil
	}
}

// pacedStream gives its grant back when the call is over. It must not ask the stream for
// its context: that keeps gRPC from sending the call again.
type pacedStream struct {
	grpc.ClientStream
	ctx       context.Context // of the caller
	operation *pacer.Operation
	grant     pacer.Grant
	answers   bool // more than one may come
	reading   atomic.Int32
	once      sync.Once
}

func (s *pacedStream) RecvMsg(m any) error {
	s.reading.Add(1)
	err := s.ClientStream.RecvMsg(m)
	s.reading.Add(-1)
	switch {
	case errors.Is(err, io.EOF), err == nil && !s.answers:
		s.end(nil, nil)
	case err != nil:
		s.end(err, s.Trailer())
	}
	return err
}

// finished is told by gRPC that the call is over, under a lock of its own that keeps the
// trailer out of reach. What the caller reads it ends with is left to RecvMsg, which
// knows the trailer; a call that was cancelled, or whose connection was closed, may have
// nobody who reads.
func (s *pacedStream) finished(err error) {
	if s.reading.Load() == 0 {
		s.end(err, nil)
	}
}

func (s *pacedStream) end(err error, trailer metadata.MD) {
	s.once.Do(func() {
		v := verdictOf(err, trailer)
		s.operation.Report(s.ctx, v)
		s.grant.Release(v.Kind)
	})
}

// resends charges for what gRPC sends again by itself.
type resends struct{}

// sends counts how often one call was sent.
type sends struct {
	operation *pacer.Operation
	n         atomic.Int32
}

type sendsKey struct{}

func watched(ctx context.Context, o *pacer.Operation) context.Context {
	return context.WithValue(ctx, sendsKey{}, &sends{operation: o})
}

func (resends) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, begin := s.(*stats.Begin); !begin {
		return
	}
	if call, ok := ctx.Value(sendsKey{}).(*sends); ok && call.n.Add(1) > 1 {
		call.operation.ChargeResend()
	}
}

func (resends) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (resends) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (resends) HandleConn(context.Context, stats.ConnStats)                       {}

var (
	_ grpc.ClientStream = (*pacedStream)(nil)
	_ stats.Handler     = resends{}
)
