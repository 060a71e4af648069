package grpcgate_test

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
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

func ExampleNewClient() {
	p, err := pacer.New(pacer.Options{
		Rate:     ratelimit.PerKey(100, 10), // of all calls to one server
		InFlight: shed.Fixed(32),
	})
	if err != nil {
		panic(err)
	}
	client, err := grpcgate.NewClient(grpcgate.ClientOptions{
		Pacer:      p,
		Attempts:   3, // of unary calls, within the pacer's retry budget
		Idempotent: func(method string) bool { return method == "/shop.Catalog/Get" },
	})
	if err != nil {
		panic(err)
	}
	conn, err := grpc.NewClient("dns:///shop:443", append(client.DialOptions(), grpc.WithTransportCredentials(credentials.NewTLS(nil)))...)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	// Output:
}
