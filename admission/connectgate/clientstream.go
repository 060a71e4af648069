package connectgate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"github.com/headgate-go/headgate/outbound/pacer"
)

// WrapStreamingClient paces all other calls. It blocks until the call may be sent. A stream
// holds its slot until it ends, its response is closed, or its context ends; it is never
// sent again.
func (c *Client) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec) // sends nothing yet
		o := c.operation(conn.Peer(), spec)
		o.StartCall()
		grant, err := o.Acquire(ctx)
		if err != nil {
			return &unsent{conn, err}
		}
		s := &pacedConn{StreamingClientConn: conn, ctx: ctx, operation: o, grant: grant}
		s.stop = context.AfterFunc(ctx, func() { s.end(ctx.Err()) }) // left without reading to its end
		return s
	}
}

// WrapStreamingHandler leaves handlers alone.
func (*Client) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// pacedConn gives its grant back when the call is over.
type pacedConn struct {
	connect.StreamingClientConn
	ctx       context.Context
	operation *pacer.Operation
	grant     pacer.Grant
	stop      func() bool // of watching ctx
	once      sync.Once
}

func (s *pacedConn) Receive(message any) error {
	err := s.StreamingClientConn.Receive(message)
	switch {
	case errors.Is(err, io.EOF):
		s.read(nil)
	case err != nil:
		s.read(err)
	}
	return err
}

func (s *pacedConn) CloseResponse() error {
	err := s.StreamingClientConn.CloseResponse()
	s.read(nil)
	return err
}

// read is told that the caller has seen the end.
func (s *pacedConn) read(err error) {
	s.stop()
	s.end(err)
}

func (s *pacedConn) end(err error) {
	s.once.Do(func() {
		v := verdictOf(err)
		s.operation.Report(s.ctx, v)
		s.grant.Release(v.Kind)
	})
}

// unsent is a call that the pacer refused.
type unsent struct {
	connect.StreamingClientConn
	err error
}

func (u *unsent) Send(any) error               { return u.err }
func (u *unsent) Receive(any) error            { return u.err }
func (u *unsent) CloseRequest() error          { return nil }
func (u *unsent) CloseResponse() error         { return nil }
func (u *unsent) ResponseHeader() http.Header  { return http.Header{} }
func (u *unsent) ResponseTrailer() http.Header { return http.Header{} }

var (
	_ connect.Interceptor = (*Client)(nil)
	_ connect.Interceptor = (*interceptor)(nil)
)
