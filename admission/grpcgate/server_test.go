package grpcgate_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// service does what a test says.
type service struct {
	pb.UnimplementedTestServiceServer
	unary  func(context.Context) error
	stream func(pb.TestService_FullDuplexCallServer) error
	calls  atomic.Int64
}

func (s *service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	s.calls.Add(1)
	if s.unary != nil {
		return &pb.SimpleResponse{}, s.unary(ctx)
	}
	return &pb.SimpleResponse{}, nil
}

func (*service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

func (s *service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	s.calls.Add(1)
	return s.stream(stream)
}

const (
	unaryMethod  = "/grpc.testing.TestService/UnaryCall"
	duplexMethod = "/grpc.testing.TestService/FullDuplexCall"
)

// dial serves s behind gate on loopback and returns a connection to it.
func dial(t testing.TB, gate *admission.Gate, s *service, o grpcgate.Options, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	g := grpcgate.New(gate, o)
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(recovered, g.Unary()),
		grpc.ChainStreamInterceptor(recoveredStream, g.Stream()),
	)
	pb.RegisterTestServiceServer(server, s)
	healthpb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
	})
	return conn
}

// recovered makes an error of a panic, as services do.
func recovered(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (answer any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Error(codes.Internal, fmt.Sprint(p))
		}
	}()
	return h(ctx, req)
}

func recoveredStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Error(codes.Internal, fmt.Sprint(p))
		}
	}()
	return h(srv, stream)
}

func gateOf(t testing.TB, o admission.Options) *admission.Gate {
	t.Helper()
	gate, err := admission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

func ask(ctx context.Context, conn *grpc.ClientConn, opts ...grpc.CallOption) error {
	_, err := pb.NewTestServiceClient(conn).UnaryCall(ctx, &pb.SimpleRequest{}, opts...)
	return err
}

func TestRefusalsSpeakGRPC(t *testing.T) {
	blocked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	block := func(context.Context) error {
		once.Do(func() { close(blocked) })
		<-release
		return nil
	}
	for name, c := range map[string]struct {
		options admission.Options
		before  func(*testing.T, *grpc.ClientConn)
		code    codes.Code
		reason  string
		retry   time.Duration // 0: not to be tried again
	}{
		"over its rate": {
			admission.Options{Rate: ratelimit.PerKey(0.5, 1)},
			func(t *testing.T, conn *grpc.ClientConn) {
				if err := ask(t.Context(), conn); err != nil {
					t.Fatal(err)
				}
			}, codes.ResourceExhausted, "rate-limited", 2 * time.Second,
		},
		"never admissible": {
			admission.Options{Rate: ratelimit.PerKey(1, 1), Routes: map[string]admission.Rule{unaryMethod: admission.AtLevel(priority.Normal, admission.Cost(5))}}, nil,
			codes.ResourceExhausted, "not-admissible", 0,
		},
		"no slot": {
			admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}},
			func(t *testing.T, conn *grpc.ClientConn) {
				go func() { _ = ask(context.Background(), conn) }()
				<-blocked
			}, codes.Unavailable, "capacity", time.Second,
		},
		"unidentified": {
			admission.Options{Identify: refuseAll}, nil,
			codes.Unauthenticated, "unidentified", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{}
			if name == "no slot" {
				s.unary = block
				defer close(release)
			}
			conn := dial(t, gateOf(t, c.options), s, grpcgate.Options{})
			if c.before != nil {
				c.before(t, conn)
			}
			calls := s.calls.Load()
			var trailer metadata.MD
			err := ask(t.Context(), conn, grpc.Trailer(&trailer))
			if s.calls.Load() != calls {
				t.Error("the handler was called")
			}
			wantRefusal(t, err, trailer, c.code, c.reason, c.retry)
		})
	}
}

// sometime is a delay of at least a second.
const sometime = time.Duration(-1)

func wantRefusal(t *testing.T, err error, trailer metadata.MD, code codes.Code, reason string, retry time.Duration) {
	t.Helper()
	if status.Code(err) != code {
		t.Fatalf("status %v, want %v", err, code)
	}
	pushback := "-1"
	var told time.Duration
	for _, d := range status.Convert(err).Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			told = d.RetryDelay.AsDuration()
			pushback = fmt.Sprint(told.Milliseconds())
		case *errdetails.ErrorInfo:
			if d.Domain != grpcgate.Domain || d.Reason == "" {
				t.Errorf("error info %v", d)
			}
		}
	}
	if retry == 0 && told != 0 || retry > 0 && (told < retry || told > 2*retry) || retry == sometime && told < time.Second {
		t.Errorf("retry delay %v, want %v", told, retry)
	}
	if !slices.Equal(trailer["headgate-reason"], []string{reason}) || !slices.Equal(trailer["grpc-retry-pushback-ms"], []string{pushback}) {
		t.Errorf("trailer %v, want reason %q and pushback %q", trailer, reason, pushback)
	}
}

func TestCallersAreIdentifiedByMetadata(t *testing.T) {
	gate := gateOf(t, admission.Options{Identify: byKey, Rate: ratelimit.PerKey(0.001, 2)})
	for _, o := range []grpcgate.Options{{}, {Metadata: []string{"X-Api-Key"}}} {
		conn := dial(t, gate, &service{}, o)
		for _, key := range []string{"one", "two"} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "x-api-key", fmt.Sprintf("%s%d", key, len(o.Metadata)))
			for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
				if got := status.Code(ask(ctx, conn)); got != want {
					t.Errorf("key %s, call %d: %v, want %v", key, i, got, want)
				}
			}
		}
	}
}

func TestRoutesOfTheGateRankCalls(t *testing.T) {
	gate := gateOf(t, admission.Options{Routes: map[string]admission.Rule{
		unaryMethod:            admission.AtLevel(priority.Critical),
		"/grpc.testing.Other/": admission.AtLevel(priority.Batch),
	}})
	s := &service{unary: func(ctx context.Context) error {
		if v, ok := admission.FromContext(ctx); !ok || v.Level != priority.Critical {
			return status.Errorf(codes.Internal, "%v %v", v, ok)
		}
		if _, limited := ctx.Deadline(); !limited {
			return status.Error(codes.Internal, "no deadline")
		}
		return nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ask(ctx, dial(t, gate, s, grpcgate.Options{})); err != nil {
		t.Error(err)
	}
}

func TestANilGateLetsAllThrough(t *testing.T) {
	if err := ask(t.Context(), dial(t, nil, &service{}, grpcgate.Options{})); err != nil {
		t.Error(err)
	}
}

// outcomes collects how visits ended.
type outcomes struct {
	mu  sync.Mutex
	all []admission.Event
}

func (o *outcomes) Attach(string, func() admission.Stats) {}

func (o *outcomes) Observe(e admission.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, e)
}

func TestOutcomesFollowTheStatus(t *testing.T) {
	for code, want := range map[codes.Code]shed.Outcome{
		codes.OK: shed.Served, codes.Internal: shed.Failed, codes.Unavailable: shed.TimedOut, codes.DeadlineExceeded: shed.TimedOut,
		codes.InvalidArgument: shed.Ignored, codes.NotFound: shed.Ignored,
	} {
		seen := &outcomes{}
		s := &service{unary: func(context.Context) error { return status.Error(code, "") }}
		_ = ask(t.Context(), dial(t, gateOf(t, admission.Options{Observer: seen}), s, grpcgate.Options{}))
		seen.mu.Lock()
		if len(seen.all) != 1 || seen.all[0].Outcome != want {
			t.Errorf("%v: %v, want outcome %v", code, seen.all, want)
		}
		seen.mu.Unlock()
	}
}
