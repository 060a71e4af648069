package grpcgate

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// call is one call as the gate sees it: a request, and a place for its answer. It is
// the context of that request, and all that is kept of it in one allocation.
type call struct {
	context.Context
	r      http.Request
	path   url.URL
	answer answer

	unary   grpc.UnaryHandler // nil: a stream
	message any
	reply   any

	streaming grpc.StreamHandler
	service   any
	stream    grpc.ServerStream

	ran bool
	err error // of the handler
}

// callKey asks a context for the call that it belongs to.
type callKey struct{}

// Value knows the call itself.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// request is the call as HTTP/2 carries it.
func (c *call) request(method, host string, h http.Header) *http.Request {
	c.path.Path = method
	r := &http.Request{
		Method: http.MethodPost, URL: &c.path, Header: h, Body: http.NoBody,
		Proto: "HTTP/2.0", ProtoMajor: 2, ContentLength: -1, RequestURI: method, Host: host,
	}
	if p, ok := peer.FromContext(c.Context); ok {
		r.RemoteAddr = addressOf(p.Addr)
		if tls, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			r.TLS = &tls.State
		}
	}
	c.r = *r.WithContext(c) // inlined: the copy lives in the call
	return &c.r
}

// addressOf writes an address as String does, in one allocation for that of TCP.
func addressOf(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	switch {
	case ok && tcp != nil:
		var buf [64]byte
		if ip := tcp.AddrPort(); ip.IsValid() {
			return string(netip.AddrPortFrom(ip.Addr().Unmap(), ip.Port()).AppendTo(buf[:0]))
		}
		return tcp.String()
	case a == nil:
		return ""
	}
	return a.String()
}

// run runs the handler.
func (c *call) run(ctx context.Context, w http.ResponseWriter) {
	c.ran = true
	if c.unary != nil {
		c.reply, c.err = c.unary(ctx, c.message)
		return
	}
	c.err = c.streaming(c.service, &gatedStream{ServerStream: c.stream, ctx: ctx, answer: w.(http.Flusher)})
}

// answer takes what the gate says of a refused call; what it is told of an admitted
// one is not sent.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

func (a *answer) Write(b []byte) (int, error) { return len(b), nil }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Flush is there for the gate to see where a stream begins.
func (a *answer) Flush() {}
