package grpcgate

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
)

// Server puts a gate in front of the calls of a gRPC server. Make one with [New]; it
// is safe for concurrent use.
type Server struct {
	isExempt func(fullMethod string) bool
	keys     []key        // of the metadata that are read
	all      bool         // all are
	gated    http.Handler // the gate, then the call
	exempt   http.Handler // likewise, for calls that are only counted
}

// Options configure a [Server]. The zero value is ready to use.
type Options struct {
	// Exempt reports whether calls of a method ("/pkg.Service/Method") pass without a
	// token and a slot. Nil: those of the services health and reflection.
	Exempt func(fullMethod string) bool
	// Metadata names the keys that the gate can read as headers, in any letter case.
	// Nil: all of them, which costs time for each. Keys that end in "-bin" are
	// never read.
	Metadata []string
}

// New returns the interceptors of gate. Everything that gate is told about HTTP
// requests holds for calls: a call is a POST to the path "/pkg.Service/Method", its
// metadata are the headers, its peer is the client's address. Options.Routes of the
// gate ranks calls and gives them costs, caps, limits and pools:
//
//	Routes: map[string]admission.Rule{
//		"/shop.Checkout/":    admission.AtLevel(priority.Critical),
//		"/shop.Export/Start": admission.AtLevel(priority.Batch, admission.Cost(5)),
//		"/shop.Feed/Watch":   admission.AtLevel(priority.Normal, admission.Stream(1000)),
//	}
//
// The deadline of a call is that of its context; Options.Deadline can only shorten it.
// A nil gate lets all calls through.
func New(gate *admission.Gate, o Options) *Server {
	s := &Server{isExempt: o.Exempt, all: o.Metadata == nil}
	if s.isExempt == nil {
		s.isExempt = infrastructure
	}
	for _, name := range o.Metadata {
		s.keys = append(s.keys, key{strings.ToLower(name), http.CanonicalHeaderKey(name)})
	}
	s.gated = gate.Handler(http.HandlerFunc(runCall))
	s.exempt = gate.At(priority.Normal, admission.Exempt())(http.HandlerFunc(runCall))
	return s
}

// infrastructure reports whether a method is asked by probes and tools.
func infrastructure(fullMethod string) bool {
	return strings.HasPrefix(fullMethod, "/grpc.health.v1.") || strings.HasPrefix(fullMethod, "/grpc.reflection.")
}

// Unary is the interceptor of calls with one request and one answer. It blocks while
// the call waits in the gate's queue. A refused call does not reach the handler: its
// status is RESOURCE_EXHAUSTED for a limit of the caller's own and UNAVAILABLE for
// lack of capacity, with google.rpc.RetryInfo and grpc-retry-pushback-ms where
// another try helps, and the reason in google.rpc.ErrorInfo and the trailer
// headgate-reason.
func (s *Server) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		c := &call{Context: ctx, unary: handler, message: req}
		if !s.pass(c, info.FullMethod) {
			return nil, c.refusal()
		}
		return c.reply, c.err
	}
}

// Stream is the interceptor of all other calls; see [Server.Unary]. A call holds its
// slot until its handler returns. On a route declared [admission.Stream] it leaves the
// slot when the handler sends its first message or header, for the cap of the route.
func (s *Server) Stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		c := &call{Context: stream.Context(), streaming: handler, service: srv, stream: stream}
		if !s.pass(c, info.FullMethod) {
			return c.refusal()
		}
		return c.err
	}
}

// pass runs the call behind the gate, and reports whether the gate let it.
func (s *Server) pass(c *call, method string) bool {
	next := s.gated
	if s.isExempt(method) {
		next = s.exempt
	}
	h, host := s.headers(c)
	next.ServeHTTP(&c.answer, c.request(method, host, h))
	return c.ran
}

// headers are the metadata of c that the gate may read, and the host that was asked.
func (s *Server) headers(c *call) (h http.Header, host string) {
	if s.all {
		return allHeaders(c)
	}
	h = make(http.Header, len(s.keys))
	for _, k := range s.keys {
		if values := metadata.ValueFromIncomingContext(c.Context, k.metadata); len(values) > 0 {
			h[k.header] = values
		}
	}
	return h, first(metadata.ValueFromIncomingContext(c.Context, authorityKey))
}

const authorityKey = ":authority"

// allHeaders leaves out what HTTP/2 itself needs, and bytes that are no text.
func allHeaders(c *call) (h http.Header, host string) {
	md, _ := metadata.FromIncomingContext(c.Context)
	h = make(http.Header, len(md))
	for name, values := range md {
		if !strings.HasPrefix(name, ":") && !strings.HasSuffix(name, "-bin") {
			h[http.CanonicalHeaderKey(name)] = values
		}
	}
	return h, first(md[authorityKey])
}

// key is a name in the metadata, and the same as a header.
type key struct{ metadata, header string }

// runCall is the handler behind the gate.
func runCall(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(callKey{}).(*call)
	c.run(r.Context(), w)
	w.WriteHeader(statusOf(status.Code(c.err)))
}
