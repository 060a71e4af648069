package grpcgate_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// until waits for what is on its way over a real connection.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("not within 20 s: " + what)
		}
	}
}

func TestHealthAndReflectionAreExempt(t *testing.T) {
	gate := gateOf(t, admission.Options{Rate: ratelimit.PerKey(0, 1), Pool: admission.Pool{Limit: shed.Fixed(1)}})
	conn := dial(t, gate, &service{}, grpcgate.Options{})
	for range 3 { // more than the rate allows
		if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Error(err)
		}
		stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
			t.Error(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Error(err)
		}
	}
	if n := gate.Stats().Count(shed.Exempt); n != 6 {
		t.Errorf("%d exempt calls are counted, want 6", n)
	}
}

func TestAPanicGivesTheSlotBack(t *testing.T) {
	gate := gateOf(t, admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}})
	s := &service{
		unary:  func(context.Context) error { panic("oh") },
		stream: func(pb.TestService_FullDuplexCallServer) error { panic("oh") },
	}
	conn := dial(t, gate, s, grpcgate.Options{})
	for range 3 {
		if err := ask(t.Context(), conn); status.Code(err) != codes.Internal || status.Convert(err).Message() != "oh" {
			t.Errorf("status %v, want the panic", err)
		}
		stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Convert(err).Message() != "oh" {
			t.Errorf("status %v, want the panic", err)
		}
	}
	if n := gate.Stats().InFlight(); n != 0 {
		t.Errorf("%d slots are held", n)
	}
}

func TestAStreamLeavesItsSlotWithItsFirstMessage(t *testing.T) {
	gate := gateOf(t, admission.Options{
		Pool:   admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
		Routes: map[string]admission.Rule{duplexMethod: admission.AtLevel(priority.Normal, admission.Stream(2))},
	})
	s := &service{stream: func(stream pb.TestService_FullDuplexCallServer) error {
		if err := stream.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
		_, err := stream.Recv()
		return err
	}}
	client := pb.NewTestServiceClient(dial(t, gate, s, grpcgate.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.Unavailable} {
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != want {
			t.Errorf("stream %d: %v, want %v", i, err, want)
		}
	}
	if s := gate.Stats(); s.InFlight() != 0 || s.Streams != 2 {
		t.Errorf("%d slots are held and %d streams counted, want 0 and 2", s.InFlight(), s.Streams)
	}
	cancel()
	until(t, "the streams are over", func() bool { return gate.Stats().Streams == 0 })
}

// In overload the lowest level is told to come back later, at once, and the highest is
// served.
func TestInOverloadCriticalCallsAreServed(t *testing.T) {
	const slots, queue, critical = 4, 8, 6
	const emptyMethod = "/grpc.testing.TestService/EmptyCall"
	gate := gateOf(t, admission.Options{
		Pool: admission.Pool{Limit: shed.Fixed(slots), MaxWaiting: queue, MaxWait: time.Minute},
		Routes: map[string]admission.Rule{
			unaryMethod: admission.AtLevel(priority.Batch),
			emptyMethod: admission.AtLevel(priority.Critical),
		},
	})
	work := make(chan struct{})
	s := &service{unary: func(context.Context) error { <-work; return nil }}
	conn := dial(t, gate, s, grpcgate.Options{})
	waiting := func(l priority.Level, n int) func() bool {
		return func() bool { return gate.Stats().Pools[0].Waiting[l.Index()] == n }
	}
	refused := make(chan func(*testing.T), 100)
	var all sync.WaitGroup
	send := func(n int) {
		for range n {
			all.Go(func() {
				var trailer metadata.MD
				if err := ask(t.Context(), conn, grpc.Trailer(&trailer)); err != nil {
					refused <- func(t *testing.T) {
						reason := slices.Concat(trailer["headgate-reason"], []string{""})[0]
						wantRefusal(t, err, trailer, codes.Unavailable, reason, sometime)
						if reason != "evicted" && reason != "queue-full" {
							t.Errorf("refused as %q", reason)
						}
					}
				}
			})
		}
	}
	send(slots)
	until(t, "all slots are taken", func() bool { return s.calls.Load() == slots })
	send(queue)
	until(t, "the queue is full", waiting(priority.Batch, queue))
	send(10)
	until(t, "those beyond are refused", func() bool { return len(refused) == 10 })
	for range critical {
		all.Go(func() {
			if _, err := pb.NewTestServiceClient(conn).EmptyCall(t.Context(), &pb.Empty{}); err != nil {
				t.Errorf("a critical call: %v", err)
			}
		})
	}
	until(t, "the critical calls have pushed others out", waiting(priority.Critical, critical))
	close(work)
	all.Wait()
	close(refused)
	if n := len(refused); n != 10+critical {
		t.Errorf("%d calls were refused, want %d", n, 10+critical)
	}
	for check := range refused {
		check(t)
	}
}

func TestCancelledStreamsLeaveNothingBehind(t *testing.T) {
	gate := gateOf(t, admission.Options{Pool: admission.Pool{Limit: shed.Fixed(8), MaxWait: time.Second}})
	s := &service{stream: func(stream pb.TestService_FullDuplexCallServer) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}}
	client := pb.NewTestServiceClient(dial(t, gate, s, grpcgate.Options{}))
	_, _ = client.UnaryCall(t.Context(), &pb.SimpleRequest{}) // the connection's own goroutines
	base := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				stream, err := client.FullDuplexCall(ctx)
				if err == nil {
					_ = stream.Send(&pb.StreamingOutputCallRequest{})
				}
				cancel()
			}
		})
	}
	all.Wait()
	until(t, "no slot, waiter or goroutine is left", func() bool {
		s := gate.Stats()
		return s.InFlight() == 0 && s.Streams == 0 && s.Pools[0].Waiting == [priority.Count]int{} && runtime.NumGoroutine() <= base+2
	})
	if n := s.calls.Load(); n == 0 {
		t.Error("no stream reached its handler")
	}
}
