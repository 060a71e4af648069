package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
)

// service is a gRPC server behind the edge.
type service struct {
	grpc_testing.UnimplementedTestServiceServer
	*grpc.Server
	url   string
	ended chan error // why each stream ended
}

func newService(t *testing.T) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Server: grpc.NewServer(), url: "http://" + l.Addr().String(), ended: make(chan error, 100)}
	grpc_testing.RegisterTestServiceServer(s, s)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return s
}

func (s *service) UnaryCall(ctx context.Context, in *grpc_testing.SimpleRequest) (*grpc_testing.SimpleResponse, error) {
	came, _ := metadata.FromIncomingContext(ctx)
	grpc.SetHeader(ctx, metadata.Pairs("x-head", strings.Join(came["user_id"], ",")))
	grpc.SetTrailer(ctx, metadata.Pairs("x-trail", "t", "x-bin-bin", "\x00\xff"))
	if in.ResponseStatus != nil {
		return nil, grpcstatus.Error(codes.Code(in.ResponseStatus.Code), in.ResponseStatus.Message)
	}
	if in.ResponseSize > 0 {
		select {
		case <-time.After(time.Duration(in.ResponseSize) * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &grpc_testing.SimpleResponse{Payload: in.Payload}, nil
}

// FullDuplexCall pushes a message each 300 ms, and one for each that comes, until its client
// has closed its side and three were pushed.
func (s *service) FullDuplexCall(stream grpc.BidiStreamingServer[grpc_testing.StreamingOutputCallRequest, grpc_testing.StreamingOutputCallResponse]) (err error) {
	defer func() { s.ended <- err }()
	stream.SetTrailer(metadata.Pairs("x-trail", "t"))
	came := make(chan error)
	go func() {
		for {
			_, err := stream.Recv()
			select {
			case came <- err:
			case <-stream.Context().Done():
			}
			if err != nil {
				return
			}
		}
	}()
	for pushed := 0; ; {
		text := "pushed"
		select {
		case <-time.After(300 * time.Millisecond):
			pushed++
		case err := <-came:
			if err == io.EOF {
				return grpcstatus.Error(codes.AlreadyExists, "the end")
			} else if err != nil {
				return err
			}
			text = "answered"
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
		if err := stream.Send(&grpc_testing.StreamingOutputCallResponse{Payload: &grpc_testing.Payload{Body: []byte(text)}}); err != nil {
			return err
		}
	}
}

const beforeGRPC = "upstream: {h2c: true}\nhttp2: {cleartext: true}\nstall_timeout: 1s\n"

func grpcClient(t *testing.T, e *edge) grpc_testing.TestServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+e.addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return grpc_testing.NewTestServiceClient(conn)
}

func TestGRPCCallsPassWithHeadersTrailersAndStatus(t *testing.T) {
	need(t)
	client := grpcClient(t, startEdge(t, newService(t).url, beforeGRPC))
	var head, trail metadata.MD
	out, err := client.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), "user_id", "7"), &grpc_testing.SimpleRequest{Payload: &grpc_testing.Payload{Body: make([]byte, 1<<20)}}, grpc.Header(&head), grpc.Trailer(&trail))
	if err != nil || len(out.Payload.Body) != 1<<20 {
		t.Fatal(out, err)
	}
	if fmt.Sprint(head["x-head"], trail["x-trail"], trail["x-bin-bin"]) != "[7] [t] [\x00\xff]" {
		t.Errorf("header %v, trailer %v", head, trail)
	}
	_, err = client.UnaryCall(t.Context(), &grpc_testing.SimpleRequest{ResponseStatus: &grpc_testing.EchoStatus{Code: int32(codes.ResourceExhausted), Message: "a quota of the service's own: ünïcode"}}, grpc.Trailer(&trail))
	if s := grpcstatus.Convert(err); s.Code() != codes.ResourceExhausted || s.Message() != "a quota of the service's own: ünïcode" || len(trail["x-trail"]) != 1 {
		t.Errorf("the service's own status came as %v, trailer %v", s, trail)
	}
}

// Case ED-04: tried on the product
func TestAGRPCStreamLivesWhileItsClientIsSilent(t *testing.T) {
	need(t)
	s := newService(t)
	e := startEdge(t, s.url, beforeGRPC)
	stream, err := grpcClient(t, e).FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&grpc_testing.StreamingOutputCallRequest{}); err != nil {
		t.Fatal(err)
	}
	for i, began := 0, time.Now(); time.Since(began) < 3*time.Second; i++ { // three times the stall
		if _, err := stream.Recv(); err != nil {
			t.Fatalf("after %d messages: %v", i, err)
		}
	}
	if got := e.metric("headgate_in_flight"); got != 1 {
		t.Errorf("%v in flight while it lives", got)
	}
	stream.CloseSend()
	for err == nil {
		_, err = stream.Recv()
	}
	if grpcstatus.Code(err) != codes.AlreadyExists || len(stream.Trailer()["x-trail"]) != 1 {
		t.Errorf("it ended with %v, trailer %v", err, stream.Trailer())
	}
	e.atRest()
}

// Case ED-08: tried on the product
func TestGRPCCallersAreRefusedInGRPC(t *testing.T) {
	need(t)
	e := startEdge(t, newService(t).url, beforeGRPC+`
gate:
  callers: [{header: X-Caller}]
  limits: {rate: {rate: 1/h, burst: 2}}
  capacity: {limit: {fixed: 1}, max_wait: none}
  deadline: {longest: 5s, grpc: true}
`)
	client := grpcClient(t, e)
	as := func(caller string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "x-caller", caller)
	}
	call := func(ctx context.Context, ms int32) (codes.Code, metadata.MD) {
		var trail metadata.MD
		_, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{ResponseSize: ms}, grpc.Trailer(&trail))
		return grpcstatus.Code(err), trail
	}
	call(as("one"), 0)
	call(as("one"), 0)
	if code, trail := call(as("one"), 0); code != codes.ResourceExhausted || len(trail["grpc-retry-pushback-ms"]) != 1 {
		t.Errorf("over its rate: %v, %v", code, trail)
	}
	ctx, cancel := context.WithCancel(as("two"))
	held, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := held.Recv(); err != nil {
		t.Fatal(err)
	}
	if code, trail := call(as("three"), 0); code != codes.Unavailable || len(trail["grpc-retry-pushback-ms"]) != 1 {
		t.Errorf("no capacity: %v, %v", code, trail)
	}
	stream, err := client.FullDuplexCall(as("four"))
	if err == nil {
		_, err = stream.Recv()
	}
	if grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("no capacity for a stream: %v", err)
	}
	cancel()
	e.atRest()
	late, cancel := context.WithTimeout(as("five"), 300*time.Millisecond)
	defer cancel()
	if code, _ := call(late, 5000); code != codes.DeadlineExceeded {
		t.Errorf("too late: %v", code)
	}
	e.atRest()
}

func TestAGRPCServerThatGoesAwayIsUnavailable(t *testing.T) {
	need(t)
	s := newService(t)
	e := startEdge(t, s.url, beforeGRPC)
	client := grpcClient(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	for err == nil {
		_, err = stream.Recv()
	}
	if ctx.Err() != nil || err == io.EOF {
		t.Errorf("a stream that broke off ended with %v", err)
	}
	if _, err := client.UnaryCall(t.Context(), &grpc_testing.SimpleRequest{}); grpcstatus.Code(err) != codes.Unavailable {
		t.Errorf("afterwards: %v", err)
	}
	e.atRest()
}

func TestAGRPCStreamThatIsCancelledEndsUpstream(t *testing.T) {
	need(t)
	s := newService(t)
	e := startEdge(t, s.url, beforeGRPC)
	client := grpcClient(t, e)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&grpc_testing.StreamingOutputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		cancel()
		select {
		case err := <-s.ended:
			if err == nil {
				t.Error("it ended well")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it goes on upstream")
		}
	}
	e.atRest()
}

// StreamingInputCall answers at its end alone.
func (s *service) StreamingInputCall(stream grpc.ClientStreamingServer[grpc_testing.StreamingInputCallRequest, grpc_testing.StreamingInputCallResponse]) error {
	for n := int32(0); ; n++ {
		if _, err := stream.Recv(); err == io.EOF {
			return stream.SendAndClose(&grpc_testing.StreamingInputCallResponse{AggregatedPayloadSize: n})
		} else if err != nil {
			return err
		}
	}
}

// Messages of a few bytes may come at their own pace, before there is any answer.
func TestAGRPCClientMaySendItsMessagesSlowly(t *testing.T) {
	need(t)
	stream, err := grpcClient(t, startEdge(t, newService(t).url, beforeGRPC)).StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if err := stream.Send(&grpc_testing.StreamingInputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond) // three times the stall in all; the server's clock is what is tested
	}
	if out, err := stream.CloseAndRecv(); err != nil || out.AggregatedPayloadSize != 6 {
		t.Errorf("%v, %v", out, err)
	}
}
