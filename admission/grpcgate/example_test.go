package grpcgate_test

import (
	"google.golang.org/grpc"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

func ExampleNew() {
	gate := admission.MustNew(admission.Options{
		Identify: byKey, // the metadata x-api-key
		Rate:     ratelimit.PerKey(50, 100),
		Routes: map[string]admission.Rule{
			"/shop.Checkout/":    admission.AtLevel(priority.Critical),
			"/shop.Export/Start": admission.AtLevel(priority.Batch, admission.Cost(5)),
			"/shop.Feed/Watch":   admission.AtLevel(priority.Normal, admission.Stream(1000)),
		},
	})
	server := grpcgate.New(gate, grpcgate.Options{Metadata: []string{"x-api-key"}})
	grpc.NewServer(
		grpc.ChainUnaryInterceptor(server.Unary()),
		grpc.ChainStreamInterceptor(server.Stream()),
	)
	// Output:
}
