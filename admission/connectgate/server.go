package connectgate

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"connectrpc.com/connect"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// New returns the interceptor of handlers that asks gate about each call. It blocks while
// a call waits in the gate's queue. A call holds its slot until its handler returns; on a
// route declared [admission.Stream] it leaves the slot when the handler sends its first
// message. Calls of the services health and reflection pass without a token and a slot;
// so do those of a route that is [admission.Exempt]. A nil gate lets all calls through. It
// is safe for concurrent use, and does nothing in a client.
//
// To Options.Identify of the gate a call looks like a request without TLS, query and body.
func New(gate *admission.Gate) connect.Interceptor {
	count := gate.At(priority.Normal, admission.Exempt())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return &interceptor{gate: gate, exempt: count}
}

type interceptor struct {
	gate   *admission.Gate
	exempt http.Handler // counts those
}

// WrapUnary is the interceptor of calls with one request and one answer.
func (i *interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (reply connect.AnyResponse, err error) {
		if req.Spec().IsClient || i.passes(ctx, req.Spec().Procedure) {
			return next(ctx, req)
		}
		inner, permit, err := i.gate.AdmitRequest(requestOf(ctx, req.Spec(), req.Peer(), req.Header()))
		if err != nil {
			return nil, refusal(err)
		}
		outcome := shed.Failed // if the handler panics
		defer func() { permit.Release(outcome) }()
		reply, err = next(inner, req)
		outcome = outcomeOf(err)
		return reply, err
	}
}

// WrapStreamingHandler is the interceptor of all other calls.
func (i *interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if i.passes(ctx, conn.Spec().Procedure) {
			return next(ctx, conn)
		}
		inner, permit, err := i.gate.AdmitRequest(requestOf(ctx, conn.Spec(), conn.Peer(), conn.RequestHeader()))
		if err != nil {
			return refusal(err)
		}
		outcome := shed.Failed
		defer func() { permit.Release(outcome) }()
		err = next(inner, &gatedConn{StreamingHandlerConn: conn, permit: permit})
		outcome = outcomeOf(err)
		return err
	}
}

// WrapStreamingClient leaves clients alone.
func (*interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// passes counts a call that is asked by probes and tools, and reports whether it is one.
func (i *interceptor) passes(ctx context.Context, procedure string) bool {
	if i.gate == nil {
		return true
	}
	if !strings.HasPrefix(procedure, "/grpc.health.v1.") && !strings.HasPrefix(procedure, "/grpc.reflection.") {
		return false
	}
	i.exempt.ServeHTTP(nil, (&http.Request{}).WithContext(ctx))
	return true
}

// requestOf is a call as the gate reads it.
func requestOf(ctx context.Context, spec connect.Spec, peer connect.Peer, h http.Header) *http.Request {
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: spec.Procedure}, Header: h, Body: http.NoBody,
		Proto: "HTTP/2.0", ProtoMajor: 2, ContentLength: -1, RequestURI: spec.Procedure, RemoteAddr: peer.Addr,
	}
	return r.WithContext(ctx)
}

// gatedConn says where the answer of a stream begins.
type gatedConn struct {
	connect.StreamingHandlerConn
	permit admission.Permit
	once   sync.Once
}

func (c *gatedConn) Send(message any) error {
	c.once.Do(c.permit.Streaming)
	return c.StreamingHandlerConn.Send(message)
}

// Refuse is for Options.HTTP.Refuse of a gate that stands as HTTP middleware around connect
// handlers: it answers callers of all three protocols with an error of theirs, as [New]
// does, before their message is read. Other requests get the gate's own answer. opts are
// those of the handlers.
func Refuse(opts ...connect.HandlerOption) func(http.ResponseWriter, *http.Request, admission.Rejection) {
	writer := connect.NewErrorWriter(opts...)
	return func(w http.ResponseWriter, r *http.Request, rej admission.Rejection) {
		if !writer.IsSupported(r) || r.Method == http.MethodGet && !connectGet(r) {
			rej.ServeHTTP(w, r)
			return
		}
		w.Header().Del(retryKey) // the error brings both
		w.Header().Del(reasonKey)
		_ = writer.Write(w, r, errorOf(&rej)) // no client is left to tell of a failure
	}
}

// connectGet reports whether a GET is a call of connect's protocol, which says so.
func connectGet(r *http.Request) bool { return strings.Contains(r.URL.RawQuery, "connect=v1") }

// refusal is the error of a call that the gate refused.
func refusal(err error) error {
	rej := (*admission.Rejection)(nil)
	if !errors.As(err, &rej) {
		return err
	}
	return errorOf(rej)
}
