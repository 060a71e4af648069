package grpcgate_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func anyKey(context.Context, string) (caller.Caller, bool) { return caller.Caller{}, true }

// BenchmarkUnary is the interceptor alone, beside the bare handler.
func BenchmarkUnary(b *testing.B) {
	handler := func(context.Context, any) (any, error) { return nil, nil }
	info := &grpc.UnaryServerInfo{FullMethod: unaryMethod}
	ctx := peer.NewContext(b.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234}})
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(":authority", "shop", "content-type", "application/grpc",
		"user-agent", "grpc-go/1.85.0", "x-api-key", "key"))
	gate := gateOf(b, admission.Options{Identify: byKey, Rate: ratelimit.PerKey(1e9, 1e9), Pool: admission.Pool{Limit: shed.Throughput{Max: 512}}})
	keyed := gateOf(b, admission.Options{Identify: grpcgate.APIKey("X-API-Key", anyKey), Rate: ratelimit.PerKey(1e9, 1e9), Pool: admission.Pool{Limit: shed.Throughput{Max: 512}}})
	for name, intercept := range map[string]grpc.UnaryServerInterceptor{
		"bare": func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			return h(ctx, req)
		},
		"gate":              grpcgate.New(gate, grpcgate.Options{}).Unary(),
		"gate, one key":     grpcgate.New(gate, grpcgate.Options{Metadata: []string{"x-api-key"}}).Unary(),
		"gate, APIKey":      grpcgate.New(keyed, grpcgate.Options{Metadata: []string{}}).Unary(),
		"gate, no metadata": grpcgate.New(gate, grpcgate.Options{Metadata: []string{}}).Unary(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := intercept(ctx, nil, info, handler); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
