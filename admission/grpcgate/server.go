package grpcgate

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Server puts a gate in front of the calls of a gRPC server. Make one with [New]; it
// is safe for concurrent use.
type Server struct {
	gate     *admission.Gate
	isExempt func(fullMethod string) bool
	exempt   http.Handler // counts those
	keys     []key        // of the metadata that are read
	all      bool         // all are
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
	s := &Server{gate: gate, isExempt: o.Exempt, all: o.Metadata == nil}
	if s.isExempt == nil {
		s.isExempt = infrastructure
	}
	for _, name := range o.Metadata {
		s.keys = append(s.keys, key{strings.ToLower(name), http.CanonicalHeaderKey(name)})
	}
	s.exempt = gate.At(priority.Normal, admission.Exempt())(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
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
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
		if s.passes(ctx, info.FullMethod) {
			return handler(ctx, req)
		}
		inner, permit, err := s.gate.AdmitRequest(s.request(ctx, info.FullMethod))
		if err != nil {
			return nil, refusal(ctx, err)
		}
		outcome := shed.Failed // if the handler panics
		defer func() { permit.Release(outcome) }()
		reply, err = handler(inner, req)
		outcome = outcomeOf(err)
		return reply, err
	}
}

// Stream is the interceptor of all other calls; see [Server.Unary]. A call holds its
// slot until its handler returns. On a route declared [admission.Stream] it leaves the
// slot when the handler sends its first message or header, for the cap of the route.
func (s *Server) Stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := stream.Context()
		if s.passes(ctx, info.FullMethod) {
			return handler(srv, stream)
		}
		inner, permit, err := s.gate.AdmitRequest(s.request(ctx, info.FullMethod))
		if err != nil {
			return refusal(ctx, err)
		}
		outcome := shed.Failed
		defer func() { permit.Release(outcome) }()
		err = handler(srv, &gatedStream{ServerStream: stream, ctx: inner, permit: permit})
		outcome = outcomeOf(err)
		return err
	}
}

// passes counts a call that is exempt and reports whether it is one.
func (s *Server) passes(ctx context.Context, method string) bool {
	if s.gate == nil {
		return true
	}
	if !s.isExempt(method) {
		return false
	}
	s.exempt.ServeHTTP(nil, (&http.Request{}).WithContext(ctx))
	return true
}
