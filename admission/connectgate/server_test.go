package connectgate_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/connectgate"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// refusals are gates that refuse the next call, and what they say.
var refusals = map[string]struct {
	options admission.Options
	code    connect.Code
	reason  string
	retry   bool
}{
	"over its rate":    {admission.Options{Rate: ratelimit.PerKey(0.5, 1)}, connect.CodeResourceExhausted, "rate-limited", true},
	"never admissible": {admission.Options{Rate: ratelimit.PerKey(0, 1)}, connect.CodeResourceExhausted, "not-admissible", false},
	"no slot":          {admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}}, connect.CodeUnavailable, "capacity", true},
	"unidentified":     {admission.Options{Identify: refuseAll}, connect.CodeUnauthenticated, "unidentified", false},
}

func TestRefusalsSpeakTheProtocolOfTheCaller(t *testing.T) {
	for name, c := range refusals {
		for place, around := range map[string]func(*testing.T, admission.Options, *service) (string, *admission.Gate){
			"interceptor": func(t *testing.T, o admission.Options, s *service) (string, *admission.Gate) {
				gate := gateOf(t, o)
				return gated(t, gate, s), gate
			},
			"edge": func(t *testing.T, o admission.Options, s *service) (string, *admission.Gate) {
				o.HTTP.Refuse = connectgate.Refuse()
				gate := gateOf(t, o)
				return serve(t, gate.Handler(s.handlers())), gate
			},
		} {
			for protocol, opts := range protocols {
				t.Run(name+", "+place+", "+protocol, func(t *testing.T) {
					s := &service{}
					url, gate := around(t, c.options, s)
					taken, err := gate.Admit(t.Context(), admission.Ticket{Caller: addressOfLoopback})
					if err == nil {
						defer taken.Release(shed.Served)
					}
					for what, err := range map[string]error{
						"unary":  ask(t.Context(), dial(t, url, greetPath, opts...)),
						"stream": listen(t.Context(), dial(t, url, feedPath, opts...)),
					} {
						wantRefusal(t, what, err, c.code, c.reason, c.retry)
					}
					if n := s.calls.Load(); n != 0 {
						t.Errorf("%d handlers were called", n)
					}
				})
			}
		}
	}
}

func wantRefusal(t *testing.T, what string, err error, code connect.Code, reason string, retry bool) {
	t.Helper()
	e := (*connect.Error)(nil)
	if !errors.As(err, &e) || e.Code() != code {
		t.Errorf("%s: %v, want %v", what, err, code)
		return
	}
	var told time.Duration
	info := false
	for _, d := range e.Details() {
		switch m, _ := d.Value(); m := m.(type) {
		case *errdetails.RetryInfo:
			told = m.RetryDelay.AsDuration()
		case *errdetails.ErrorInfo:
			info = m.Domain == "headgate" && m.Reason == strings.ToUpper(strings.ReplaceAll(reason, "-", "_"))
		}
	}
	if !info || e.Meta().Get("Headgate-Reason") != reason {
		t.Errorf("%s: details %v, metadata %v; want the reason %s", what, e.Details(), e.Meta(), reason)
	}
	if len(e.Meta().Values("Headgate-Reason")) > 1 || len(e.Meta().Values("Retry-After")) > 1 {
		t.Errorf("%s: said twice: %v", what, e.Meta())
	}
	pushback, after := e.Meta().Get("Grpc-Retry-Pushback-Ms"), e.Meta().Get("Retry-After")
	if retry && (told < time.Second || pushback != after+"000") || !retry && (told != 0 || pushback != "-1" || after != "") {
		t.Errorf("%s: retry after %v, pushback %q, Retry-After %q", what, told, pushback, after)
	}
}

func TestOtherRequestsGetTheAnswerOfTheGate(t *testing.T) {
	o := admission.Options{Identify: refuseAll}
	o.HTTP.Refuse = connectgate.Refuse()
	resp, err := http.Get(serve(t, gateOf(t, o).Handler((&service{}).handlers())) + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusForbidden || got != "application/problem+json" {
		t.Errorf("%s %q", resp.Status, got)
	}
}

func TestRoutesIdentityAndDeadlineReachTheHandler(t *testing.T) {
	gate := gateOf(t, admission.Options{
		Identify: byKey,
		Routes:   map[string]admission.Rule{"/acme.v1.Greet/": admission.AtLevel(priority.High)},
	})
	s := &service{greet: func(ctx context.Context) error {
		v, ok := admission.FromContext(ctx)
		if left := time.Until(v.Deadline); !ok || v.Level != priority.High || v.Caller.Key != "ann" || left <= 0 || left > time.Minute {
			return connect.NewError(connect.CodeAborted, errors.New(v.Level.String()+v.Caller.Key))
		}
		return nil
	}}
	url := gated(t, gate, s)
	for protocol, opts := range protocols {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := connect.NewRequest(wrapperspb.String(""))
		r.Header().Set("X-API-Key", "ann")
		if _, err := dial(t, url, greetPath, opts...).CallUnary(ctx, r); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

func TestACallThatMeetsTheGateTwiceIsDecidedOnce(t *testing.T) {
	gate := gateOf(t, admission.Options{Rate: ratelimit.PerKey(0.001, 1)})
	s := &service{}
	url := serve(t, gate.Handler(s.handlers(connect.WithInterceptors(connectgate.New(gate)))))
	if err := ask(t.Context(), dial(t, url, greetPath)); err != nil {
		t.Error(err)
	}
	if n := gate.Stats().Count(shed.Admitted); n != 1 {
		t.Errorf("%d admissions, want 1", n)
	}
}

// outcomes collects how visits ended.
type outcomes struct {
	mu  sync.Mutex
	all []shed.Outcome
}

func (o *outcomes) Attach(string, func() admission.Stats) {}

func (o *outcomes) Observe(e admission.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, e.Outcome)
}

// In gRPC a failure has the status 200 of HTTP: the gate learns it all the same.
func TestOutcomesFollowTheCode(t *testing.T) {
	for protocol, opts := range protocols {
		for code, want := range map[connect.Code]shed.Outcome{
			0: shed.Served, connect.CodeInternal: shed.Failed, connect.CodeUnavailable: shed.TimedOut, connect.CodeInvalidArgument: shed.Ignored,
		} {
			seen := &outcomes{}
			s := &service{greet: func(context.Context) error {
				if code == 0 {
					return nil
				}
				return connect.NewError(code, errors.New("so"))
			}}
			_ = ask(t.Context(), dial(t, gated(t, gateOf(t, admission.Options{Observer: seen}), s), greetPath, opts...))
			seen.mu.Lock()
			if len(seen.all) != 1 || seen.all[0] != want {
				t.Errorf("%s, %v: %v, want %v", protocol, code, seen.all, want)
			}
			seen.mu.Unlock()
		}
	}
}

func TestStreamsLeaveTheirSlotAndPanicsGiveItBack(t *testing.T) {
	gate := gateOf(t, admission.Options{
		Pool:   admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
		Routes: map[string]admission.Rule{feedPath: admission.AtLevel(priority.Normal, admission.Stream(2))},
	})
	s := &service{
		greet: func(context.Context) error { panic(http.ErrAbortHandler) },
		feed: func(ctx context.Context, stream *connect.ServerStream[message]) error {
			if err := stream.Send(wrapperspb.String("first")); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		},
	}
	url := gated(t, gate, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	feed := dial(t, url, feedPath, connect.WithGRPC())
	for range 2 {
		stream, err := feed.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("")))
		if err != nil || !stream.Receive() {
			t.Fatal(err, stream.Err())
		}
		defer stream.Close()
	}
	if s := gate.Stats(); s.InFlight() != 0 || s.Streams != 2 {
		t.Errorf("%d slots are held and %d streams counted, want 0 and 2", s.InFlight(), s.Streams)
	}
	wantRefusal(t, "a third stream", listen(ctx, feed), connect.CodeUnavailable, "stream-cap", true)
	for range 3 {
		if err := ask(ctx, dial(t, url, greetPath)); err == nil || strings.Contains(err.Error(), "capacity") {
			t.Errorf("a panic: %v", err)
		}
	}
	cancel()
	until(t, "streams and panics hold nothing", func() bool { s := gate.Stats(); return s.Streams == 0 && s.InFlight() == 0 })
}

func TestCancelledStreamsLeaveNothingBehind(t *testing.T) {
	gate := gateOf(t, admission.Options{Pool: admission.Pool{Limit: shed.Fixed(8), MaxWait: time.Second}})
	s := &service{feed: func(ctx context.Context, _ *connect.ServerStream[message]) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	url := gated(t, gate, s)
	c := dial(t, url, feedPath, connect.WithGRPC())
	base := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				_ = listen(ctx, c)
				cancel()
			}
		})
	}
	all.Wait()
	until(t, "no slot, waiter or goroutine is left", func() bool {
		s := gate.Stats()
		return s.InFlight() == 0 && s.Pools[0].Waiting == [priority.Count]int{} && runtime.NumGoroutine() <= base+8 // the connection's own
	})
	if s.calls.Load() == 0 {
		t.Error("no stream reached its handler")
	}
}

func TestANilGateLetsAllThrough(t *testing.T) {
	if err := ask(t.Context(), dial(t, gated(t, nil, &service{}), greetPath)); err != nil {
		t.Error(err)
	}
}
