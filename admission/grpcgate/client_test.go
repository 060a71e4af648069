package grpcgate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func newPacer(t *testing.T, o pacer.Options) *pacer.Pacer {
	t.Helper()
	p, err := pacer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func clientOf(t *testing.T, o grpcgate.ClientOptions) *grpcgate.Client {
	t.Helper()
	c, err := grpcgate.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClientOptionsNameTheField(t *testing.T) {
	for field, o := range map[string]grpcgate.ClientOptions{
		"Pacer": {}, "Attempts": {Pacer: newPacer(t, pacer.Options{}), Attempts: -1},
	} {
		if _, err := grpcgate.NewClient(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}

func TestCallsTakeTokensOfThePacer(t *testing.T) {
	p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(0.001, 2), MaxWait: time.Millisecond})
	s := &service{}
	conn := dial(t, nil, s, grpcgate.Options{}, clientOf(t, grpcgate.ClientOptions{Pacer: p}).DialOptions()...)
	for i := range 3 {
		err := ask(t.Context(), conn)
		if refusal := (*pacer.Refusal)(nil); errors.As(err, &refusal) != (i == 2) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if n := s.calls.Load(); n != 2 {
		t.Errorf("%d calls reached the server, want 2", n)
	}
}

func TestThrottlesAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		say  error
		with metadata.MD
		kind verdict.Kind
		cuts uint64
	}{
		"exhausted":             {status.Error(codes.ResourceExhausted, "slow down"), nil, verdict.Throttled, 1},
		"with a hint":           {status.Error(codes.ResourceExhausted, ""), metadata.Pairs("grpc-retry-pushback-ms", "2000"), verdict.Throttled, 1},
		"too large a message":   {status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), nil, verdict.Permanent, 0},
		"unavailable":           {status.Error(codes.Unavailable, ""), nil, verdict.Transient, 0},
		"a gate's refusal":      {status.Error(codes.ResourceExhausted, ""), metadata.Pairs("headgate-reason", "rate-limited", "grpc-retry-pushback-ms", "1000"), verdict.Throttled, 1},
		"a gate's lack of room": {status.Error(codes.Unavailable, ""), metadata.Pairs("headgate-reason", "queue-full", "grpc-retry-pushback-ms", "1000"), verdict.Overloaded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(100, 10)})
			s := &service{unary: func(ctx context.Context) error {
				_ = grpc.SetTrailer(ctx, c.with)
				return c.say
			}}
			conn := dial(t, nil, s, grpcgate.Options{}, clientOf(t, grpcgate.ClientOptions{Pacer: p}).DialOptions()...)
			if err := ask(t.Context(), conn); status.Code(err) != status.Code(c.say) {
				t.Fatalf("the caller got %v", err)
			}
			o := p.Stats().Operations[0]
			if o.Ended[c.kind] != 1 || o.Cuts != c.cuts || o.InFlight != 0 {
				t.Errorf("ended %v, %d cuts, %d in flight; want one %v and %d cuts", o.Ended, o.Cuts, o.InFlight, c.kind, c.cuts)
			}
		})
	}
}

func TestRefusedCallsAreSentAgainWithinTheBudget(t *testing.T) {
	refusedOnce := func() func(context.Context) error {
		n := 0
		return func(context.Context) error {
			if n++; n == 1 {
				return status.Error(codes.ResourceExhausted, "")
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		options grpcgate.ClientOptions
		budget  pacer.BudgetOptions
		calls   int64
	}{
		"once":          {grpcgate.ClientOptions{}, pacer.BudgetOptions{}, 1},
		"twice":         {grpcgate.ClientOptions{Attempts: 2}, pacer.BudgetOptions{}, 2},
		"budget spent":  {grpcgate.ClientOptions{Attempts: 2}, pacer.BudgetOptions{Ratio: pacer.NoBudget, Floor: pacer.NoBudget}, 1},
		"three allowed": {grpcgate.ClientOptions{Attempts: 3}, pacer.BudgetOptions{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Pacer = newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1000, 10), Budget: c.budget})
			s := &service{unary: refusedOnce()}
			err := ask(t.Context(), dial(t, nil, s, grpcgate.Options{}, clientOf(t, c.options).DialOptions()...))
			if s.calls.Load() != c.calls || (err == nil) != (c.calls == 2) {
				t.Errorf("%d calls, %v; want %d calls", s.calls.Load(), err, c.calls)
			}
		})
	}
}

func TestOnlyWhatMayBeRepeatedIs(t *testing.T) {
	for name, c := range map[string]struct {
		code       codes.Code
		idempotent bool
		calls      int64
	}{
		"a fault":                 {codes.Unavailable, false, 1},
		"a fault, idempotent":     {codes.Unavailable, true, 3},
		"a mistake, idempotent":   {codes.InvalidArgument, true, 1},
		"a conflict, idempotent":  {codes.Aborted, true, 3},
		"cancelled by the server": {codes.Canceled, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{unary: func(context.Context) error { return status.Error(c.code, "") }}
			client := clientOf(t, grpcgate.ClientOptions{
				Pacer: newPacer(t, pacer.Options{}), Attempts: 3, Idempotent: func(string) bool { return c.idempotent },
			})
			if err := ask(t.Context(), dial(t, nil, s, grpcgate.Options{}, client.DialOptions()...)); status.Code(err) != c.code {
				t.Errorf("the caller got %v", err)
			}
			if n := s.calls.Load(); n != c.calls {
				t.Errorf("%d calls, want %d", n, c.calls)
			}
		})
	}
}

func TestAGuardThatIsOpenSendsNothing(t *testing.T) {
	open := errors.New("open")
	p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(0.001, 1)})
	s := &service{}
	guarded := clientOf(t, grpcgate.ClientOptions{Pacer: p, Guard: func(_ context.Context, method string, attempt func() error) error {
		if s.calls.Load() == 0 && method == unaryMethod {
			return open
		}
		return attempt()
	}})
	conn := dial(t, nil, s, grpcgate.Options{}, guarded.DialOptions()...)
	err := ask(t.Context(), conn)
	if refusal := (*pacer.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != pacer.BreakerOpen || !errors.Is(err, open) {
		t.Errorf("got %v, want the guard's refusal", err)
	}
	s.calls.Add(1)
	if err := ask(t.Context(), conn); err != nil { // the one token there is came back
		t.Error(err)
	}
}

func TestStreamsHoldTheirSlotUntilTheyEnd(t *testing.T) {
	for name, end := range map[string]func(*testing.T, pb.TestService_FullDuplexCallClient, context.CancelFunc, *grpc.ClientConn){
		"read to its end": func(t *testing.T, stream pb.TestService_FullDuplexCallClient, _ context.CancelFunc, _ *grpc.ClientConn) {
			if err := stream.CloseSend(); err != nil {
				t.Error(err)
			}
			for {
				if _, err := stream.Recv(); err != nil {
					return
				}
			}
		},
		"left": func(_ *testing.T, _ pb.TestService_FullDuplexCallClient, cancel context.CancelFunc, _ *grpc.ClientConn) {
			cancel()
		},
		"connection closed": func(_ *testing.T, _ pb.TestService_FullDuplexCallClient, _ context.CancelFunc, conn *grpc.ClientConn) {
			conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPacer(t, pacer.Options{InFlight: shed.Fixed(1)})
			s := &service{stream: func(stream pb.TestService_FullDuplexCallServer) error {
				_ = stream.Send(&pb.StreamingOutputCallResponse{})
				_, err := stream.Recv()
				return err
			}}
			conn := dial(t, nil, s, grpcgate.Options{}, clientOf(t, grpcgate.ClientOptions{Pacer: p}).DialOptions()...)
			client := pb.NewTestServiceClient(conn)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := client.FullDuplexCall(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			if n := p.Stats().Operations[0].InFlight; n != 1 {
				t.Errorf("%d in flight while the stream is open, want 1", n)
			}
			end(t, stream, cancel, conn)
			until(t, "the slot is free", func() bool { return p.Stats().Operations[0].InFlight == 0 })
		})
	}
}

func TestARefusalOfAGateKeepsTheClientAway(t *testing.T) {
	gate := gateOf(t, admission.Options{Rate: ratelimit.PerKey(0.1, 5)})
	p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1000, 10), MaxWait: time.Millisecond})
	s := &service{}
	conn := dial(t, gate, s, grpcgate.Options{}, clientOf(t, grpcgate.ClientOptions{Pacer: p}).DialOptions()...)
	for range 5 {
		if err := ask(t.Context(), conn); err != nil {
			t.Error(err)
		}
	}
	if err := ask(t.Context(), conn); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("over the limit: %v", err)
	}
	err := ask(t.Context(), conn)
	if refusal := (*pacer.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != pacer.Paused {
		t.Errorf("while the gate asks to stay away: %v, want a refusal on this side", err)
	}
	if o := p.Stats().Operations[0]; o.Cuts != 1 || o.Multiplier >= 1 || s.calls.Load() != 5 {
		t.Errorf("%d cuts, multiplier %v, %d calls served", o.Cuts, o.Multiplier, s.calls.Load())
	}
}
