// Package grpcgate puts a [github.com/headgate-go/headgate/admission.Gate] in front of a gRPC server.
//
//	gate := admission.MustNew(admission.Options{ … })
//	server := grpcgate.New(gate, grpcgate.Options{})
//	grpc.NewServer(
//		grpc.ChainUnaryInterceptor(server.Unary()),
//		grpc.ChainStreamInterceptor(server.Stream()),
//	)
//
// Callers are identified, limited, ranked and made to wait as in HTTP, by the same
// gate: one may serve both. What is refused is answered in gRPC.
//
// A handler reaches the gate through its context: [github.com/headgate-go/headgate/admission.FromContext] tells
// the caller and level, [github.com/headgate-go/headgate/admission.Charge] settles the cost. Limits are not told
// in headers, whatever Options.HTTP of the gate says.
//
// A call whose handler panics gives its slot back; the panic goes up.
//
// On the other side, [Client] paces the calls that a client makes, by the same law as
// package outbound does for HTTP:
//
//	p, err := pacer.New(pacer.Options{Rate: ratelimit.PerKey(100, 10)})
//	client, err := grpcgate.NewClient(grpcgate.ClientOptions{Pacer: p, Attempts: 3})
//	conn, err := grpc.NewClient(target, append(client.DialOptions(), creds)...)
//
// Package admissionpb reads levels and costs from the proto files. For connect-go there is
// the module [github.com/headgate-go/headgate/admission/connectgate].
package grpcgate
