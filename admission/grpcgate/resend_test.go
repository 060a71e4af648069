package grpcgate_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// retrying is a service config by which gRPC sends calls again itself.
var retrying = grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.001s",
	"maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}`)

func TestRetriesOfGRPCItselfAreCharged(t *testing.T) {
	p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(0.001, 6), MaxWait: time.Millisecond})
	s := &service{
		unary:  func(context.Context) error { return status.Error(codes.Unavailable, "") },
		stream: func(pb.TestService_FullDuplexCallServer) error { return status.Error(codes.Unavailable, "") },
	}
	opts := append(clientOf(t, grpcgate.ClientOptions{Pacer: p}).DialOptions(), retrying)
	conn := dial(t, nil, s, grpcgate.Options{}, opts...)
	_ = ask(t.Context(), conn)
	o := p.Stats().Operations[0]
	if s.calls.Load() != 3 || o.Attempts != 3 || o.Resends != 2 {
		t.Errorf("%d calls, %d attempts, %d resends; want 3, 3, 2", s.calls.Load(), o.Attempts, o.Resends)
	}
	stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = stream.Recv()
	if o := p.Stats().Operations[0]; s.calls.Load() != 6 || o.Attempts != 6 || o.Resends != 4 {
		t.Errorf("%d calls, %d attempts, %d resends; want 6, 6, 4", s.calls.Load(), o.Attempts, o.Resends)
	}
	if err := ask(t.Context(), conn); err == nil || s.calls.Load() != 6 { // the tokens went to the resends
		t.Errorf("%v, %d calls", err, s.calls.Load())
	}
}

// grpc-go itself reads the pushback: what can never be admitted is not sent again, by a
// policy that would.
func TestRetriesOfGRPCItselfHonourTheGate(t *testing.T) {
	gate := gateOf(t, admission.Options{
		Rate:   ratelimit.PerKey(1, 1),
		Routes: map[string]admission.Rule{unaryMethod: admission.AtLevel(priority.Normal, admission.Cost(5))},
	})
	p := newPacer(t, pacer.Options{})
	opts := append(clientOf(t, grpcgate.ClientOptions{Pacer: p}).DialOptions(), retrying)
	if err := ask(t.Context(), dial(t, gate, &service{}, grpcgate.Options{}, opts...)); status.Code(err) != codes.ResourceExhausted {
		t.Fatal(err)
	}
	if o := p.Stats().Operations[0]; o.Attempts != 1 || o.Resends != 0 {
		t.Errorf("%d attempts, %d resends; want 1 and 0", o.Attempts, o.Resends)
	}
}

// A server that is no gate says in the status alone how long to stay away.
func TestRetryInfoAlonePauses(t *testing.T) {
	p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(100, 10)})
	s := &service{unary: func(context.Context) error {
		st, err := status.New(codes.ResourceExhausted, "").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(30 * time.Second)})
		if err != nil {
			return err
		}
		return st.Err()
	}}
	_ = ask(t.Context(), dial(t, nil, s, grpcgate.Options{}, clientOf(t, grpcgate.ClientOptions{Pacer: p}).DialOptions()...))
	o := p.Stats().Operations[0]
	if o.Ended[verdict.Throttled] != 1 || o.PauseLeft < 25*time.Second || o.PauseLeft > 40*time.Second {
		t.Errorf("ended %v, pause %v; want one throttle and about 30 s", o.Ended, o.PauseLeft)
	}
}
