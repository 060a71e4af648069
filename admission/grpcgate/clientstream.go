package grpcgate

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
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
		stream, err := streamer(watched(ctx, o), desc, cc, method, opts...)
		if err != nil {
			v := verdictOf(err, nil)
			o.Report(ctx, v)
			grant.Release(v.Kind)
			return nil, err
		}
		s := &pacedStream{ClientStream: stream, operation: o, grant: grant, answers: desc.ServerStreams}
		context.AfterFunc(stream.Context(), func() { s.end(context.Canceled) }) // left without reading to its end
		return s, nil
	}
}

// pacedStream gives its grant back when the call is over.
type pacedStream struct {
	grpc.ClientStream
	operation *pacer.Operation
	grant     pacer.Grant
	answers   bool // more than one may come
	once      sync.Once
}

func (s *pacedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case errors.Is(err, io.EOF), err == nil && !s.answers:
		s.end(nil)
	case err != nil:
		s.end(err)
	}
	return err
}

func (s *pacedStream) end(err error) {
	s.once.Do(func() {
		v := verdict.Verdict{Kind: verdict.Canceled}
		if !errors.Is(err, context.Canceled) {
			v = verdictOf(err, s.Trailer())
		}
		s.operation.Report(s.Context(), v)
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
