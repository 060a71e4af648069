package recipes

import (
	"context"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
)

// GreetPath is the procedure of the service that Connect serves.
const GreetPath = "/acme.v1.GreetService/Greet"

// Connect serves a procedure behind a gate: the paths of RPCs are routes like any
// other. The deadline comes from the header of either protocol. A client sees a
// refusal as CodeUnavailable; Retry-After is in the HTTP answer below, where an
// outbound.Transport under the client hears it.
func Connect(opts admission.Options, greet func(context.Context, *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error)) (http.Handler, error) {
	// connect: begin
	opts.Deadline = admission.Deadlines(
		admission.TimeoutHeader("Connect-Timeout-Ms", 5*time.Second),
		admission.GRPCTimeout(5*time.Second),
	)
	gate, err := admission.New(opts)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(GreetPath, gate.At(priority.High)(connect.NewUnaryHandler(GreetPath, greet)))
	return mux, nil
	// connect: end
}
