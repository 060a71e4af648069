package connectgate_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/connectgate"
)

const (
	greetPath = "/acme.v1.Greet/Greet"
	feedPath  = "/acme.v1.Greet/Feed"
)

type (
	message = wrapperspb.StringValue
	client  = connect.Client[message, message]
)

// protocols are the three that connect speaks.
var protocols = map[string][]connect.ClientOption{
	"connect":  nil,
	"grpc":     {connect.WithGRPC()},
	"grpc-web": {connect.WithGRPCWeb()},
}

// service does what a test says.
type service struct {
	greet func(context.Context) error
	feed  func(context.Context, *connect.ServerStream[message]) error
	calls atomic.Int64
}

func (s *service) handlers(opts ...connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(greetPath, connect.NewUnaryHandler(greetPath, func(ctx context.Context, _ *connect.Request[message]) (*connect.Response[message], error) {
		s.calls.Add(1)
		if s.greet != nil {
			if err := s.greet(ctx); err != nil {
				return nil, err
			}
		}
		return connect.NewResponse(wrapperspb.String("hello")), nil
	}, opts...))
	mux.Handle(feedPath, connect.NewServerStreamHandler(feedPath, func(ctx context.Context, _ *connect.Request[message], stream *connect.ServerStream[message]) error {
		s.calls.Add(1)
		return s.feed(ctx, stream)
	}, opts...))
	return mux
}

// serve serves h on loopback, over HTTP/1 and HTTP/2 without TLS.
func serve(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// gated serves s behind the interceptor.
func gated(t testing.TB, gate *admission.Gate, s *service) (url string) {
	t.Helper()
	return serve(t, s.handlers(connect.WithInterceptors(connectgate.New(gate))))
}

func dial(t testing.TB, url, path string, opts ...connect.ClientOption) *client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return connect.NewClient[message, message](&http.Client{Transport: transport}, url+path, opts...)
}

func ask(ctx context.Context, c *client) error {
	_, err := c.CallUnary(ctx, connect.NewRequest(wrapperspb.String("Ann")))
	return err
}

// listen reads a stream to its end.
func listen(ctx context.Context, c *client) error {
	stream, err := c.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("Ann")))
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
	}
	return stream.Err()
}

func gateOf(t testing.TB, o admission.Options) *admission.Gate {
	t.Helper()
	gate, err := admission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

var byKey = caller.APIKey("X-API-Key", func(_ context.Context, key string) (caller.Caller, bool) {
	return caller.Caller{Key: key}, true
})

func refuseAll(*http.Request) (caller.Caller, error) {
	return caller.Caller{}, errors.New("unknown")
}

// until waits for what is on its way over a real connection.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("not within 20 s: " + what)
		}
	}
}

// addressOfLoopback is whom clients without a name are taken for.
var addressOfLoopback = caller.OfAddress("127.0.0.1")
