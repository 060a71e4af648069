package connectgate_test

import (
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/connectgate"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// shop stands for the handler that protoc-gen-connect-go makes.
func shop(...connect.HandlerOption) (path string, h http.Handler) {
	return "/shop.v1.Shop/", http.NotFoundHandler()
}

func ExampleNew() {
	gate := admission.MustNew(admission.Options{
		Identify: byKey, // the header X-API-Key
		Rate:     ratelimit.PerKey(50, 100),
		Routes: map[string]admission.Rule{
			"/shop.v1.Shop/Pay":    admission.AtLevel(priority.Critical),
			"/shop.v1.Shop/Export": admission.AtLevel(priority.Batch, admission.Cost(5)),
			"/shop.v1.Shop/Watch":  admission.AtLevel(priority.Normal, admission.Stream(1000)),
		},
	})
	mux := http.NewServeMux()
	mux.Handle(shop(connect.WithInterceptors(connectgate.New(gate))))
	// Output:
}

// The gate as HTTP middleware refuses before the message of a call is read.
func ExampleRefuse() {
	gate := admission.MustNew(admission.Options{
		Rate: ratelimit.PerKey(50, 100),
		HTTP: admission.HTTP{Refuse: connectgate.Refuse()},
		Deadline: admission.Deadlines(
			admission.TimeoutHeader("Connect-Timeout-Ms", 5*time.Second),
			admission.GRPCTimeout(5*time.Second),
		),
	})
	mux := http.NewServeMux()
	mux.Handle(shop())
	_ = http.Server{Addr: ":8080", Handler: gate.Handler(mux)}
	// Output:
}

func ExampleNewClient() {
	p, err := pacer.New(pacer.Options{Rate: ratelimit.PerKey(100, 10)})
	if err != nil {
		panic(err)
	}
	client, err := connectgate.NewClient(connectgate.ClientOptions{Pacer: p, Attempts: 3})
	if err != nil {
		panic(err)
	}
	_ = connect.WithInterceptors(client) // for shopv1connect.NewShopClient
	// Output:
}
