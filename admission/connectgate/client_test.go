package connectgate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/connectgate"
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

// paced are the options of a client whose calls the pacer holds.
func paced(t *testing.T, o connectgate.ClientOptions, opts ...connect.ClientOption) []connect.ClientOption {
	t.Helper()
	c, err := connectgate.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return append([]connect.ClientOption{connect.WithInterceptors(c)}, opts...)
}

func TestClientOptionsNameTheField(t *testing.T) {
	for field, o := range map[string]connectgate.ClientOptions{
		"Pacer": {}, "Attempts": {Pacer: newPacer(t, pacer.Options{}), Attempts: -1},
	} {
		if _, err := connectgate.NewClient(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error %v does not name %s", err, field)
		}
	}
}

func TestCallsTakeTokensOfThePacer(t *testing.T) {
	for protocol, opts := range protocols {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(0.001, 2), MaxWait: time.Millisecond})
		s := &service{feed: func(context.Context, *connect.ServerStream[message]) error { return nil }}
		url := gated(t, nil, s)
		o := connectgate.ClientOptions{Pacer: p}
		for i, err := range []error{
			ask(t.Context(), dial(t, url, greetPath, paced(t, o, opts...)...)),
			listen(t.Context(), dial(t, url, feedPath, paced(t, o, opts...)...)),
			ask(t.Context(), dial(t, url, greetPath, paced(t, o, opts...)...)),
			listen(t.Context(), dial(t, url, feedPath, paced(t, o, opts...)...)),
		} {
			if refusal := (*pacer.Refusal)(nil); errors.As(err, &refusal) != (i >= 2) {
				t.Errorf("%s, call %d: %v", protocol, i, err)
			}
		}
		if n := s.calls.Load(); n != 2 {
			t.Errorf("%s: %d calls reached the server, want 2", protocol, n)
		}
		if n := p.Stats().Operations[0].InFlight; n != 0 {
			t.Errorf("%s: %d are in flight", protocol, n)
		}
	}
}

func TestEndsAreUnderstoodInEveryProtocol(t *testing.T) {
	hinted := connect.NewError(connect.CodeResourceExhausted, errors.New("slow down"))
	detail, err := connect.NewErrorDetail(&errdetails.RetryInfo{RetryDelay: durationpb.New(30 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	hinted.AddDetail(detail)
	for protocol, opts := range protocols {
		for name, c := range map[string]struct {
			say    error
			kind   verdict.Kind
			pauses bool
		}{
			"ok":          {nil, verdict.OK, false},
			"exhausted":   {connect.NewError(connect.CodeResourceExhausted, errors.New("slow down")), verdict.Throttled, false},
			"with a hint": {hinted, verdict.Throttled, true},
			"unavailable": {connect.NewError(connect.CodeUnavailable, errors.New("gone")), verdict.Transient, false},
			"a mistake":   {connect.NewError(connect.CodeInvalidArgument, errors.New("no")), verdict.Permanent, false},
		} {
			p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(100, 10)})
			s := &service{greet: func(context.Context) error { return c.say }}
			_ = ask(t.Context(), dial(t, gated(t, nil, s), greetPath, paced(t, connectgate.ClientOptions{Pacer: p}, opts...)...))
			if o := p.Stats().Operations[0]; o.Ended[c.kind] != 1 || o.InFlight != 0 || (o.PauseLeft > 25*time.Second) != c.pauses {
				t.Errorf("%s, %s: ended %v, pause %v, %d in flight; want one %v", protocol, name, o.Ended, o.PauseLeft, o.InFlight, c.kind)
			}
		}
	}
}

func TestARefusalOfAGateKeepsTheClientAway(t *testing.T) {
	for protocol, opts := range protocols {
		gate := gateOf(t, admission.Options{Rate: ratelimit.PerKey(0.1, 1)})
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1000, 10), MaxWait: time.Millisecond})
		c := dial(t, gated(t, gate, &service{}), greetPath, paced(t, connectgate.ClientOptions{Pacer: p}, opts...)...)
		if err := ask(t.Context(), c); err != nil {
			t.Error(err)
		}
		if err := ask(t.Context(), c); connect.CodeOf(err) != connect.CodeResourceExhausted {
			t.Errorf("%s: over the limit: %v", protocol, err)
		}
		err := ask(t.Context(), c)
		if refusal := (*pacer.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != pacer.Paused {
			t.Errorf("%s: while the gate asks to stay away: %v", protocol, err)
		}
	}
}

func TestCallsAreSentAgainWithinTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		options connectgate.ClientOptions
		code    connect.Code
		calls   int64
	}{
		"once":                {connectgate.ClientOptions{}, connect.CodeResourceExhausted, 1},
		"refused":             {connectgate.ClientOptions{Attempts: 3}, connect.CodeResourceExhausted, 3},
		"a fault":             {connectgate.ClientOptions{Attempts: 3}, connect.CodeUnavailable, 1},
		"a fault, idempotent": {connectgate.ClientOptions{Attempts: 3, Idempotent: func(connect.Spec) bool { return true }}, connect.CodeUnavailable, 3},
	} {
		c.options.Pacer = newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1000, 10)})
		s := &service{greet: func(context.Context) error { return connect.NewError(c.code, errors.New("")) }}
		err := ask(t.Context(), dial(t, gated(t, nil, s), greetPath, paced(t, c.options)...))
		if s.calls.Load() != c.calls || connect.CodeOf(err) != c.code {
			t.Errorf("%s: %d calls, %v; want %d calls", name, s.calls.Load(), err, c.calls)
		}
	}
}

func TestAGuardThatIsOpenSendsNothing(t *testing.T) {
	open := errors.New("open")
	s := &service{}
	o := connectgate.ClientOptions{
		Pacer: newPacer(t, pacer.Options{Rate: ratelimit.PerKey(0.001, 1)}),
		Guard: func(_ context.Context, spec connect.Spec, attempt func() error) error {
			if s.calls.Load() == 0 && spec.Procedure == greetPath {
				return open
			}
			return attempt()
		},
	}
	c := dial(t, gated(t, nil, s), greetPath, paced(t, o)...)
	err := ask(t.Context(), c)
	if refusal := (*pacer.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != pacer.BreakerOpen || !errors.Is(err, open) {
		t.Errorf("got %v, want the guard's refusal", err)
	}
	s.calls.Add(1)
	if err := ask(t.Context(), c); err != nil { // the one token there is came back
		t.Error(err)
	}
}

func TestStreamsHoldTheirSlotUntilTheyEnd(t *testing.T) {
	for name, end := range map[string]func(*connect.ServerStreamForClient[message], context.CancelFunc){
		"closed": func(stream *connect.ServerStreamForClient[message], _ context.CancelFunc) { _ = stream.Close() },
		"left":   func(_ *connect.ServerStreamForClient[message], cancel context.CancelFunc) { cancel() },
	} {
		p := newPacer(t, pacer.Options{InFlight: shed.Fixed(1)})
		leave := make(chan struct{})
		s := &service{feed: func(ctx context.Context, stream *connect.ServerStream[message]) error {
			_ = stream.Send(wrapperspb.String("first"))
			select {
			case <-ctx.Done():
			case <-leave:
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := dial(t, gated(t, nil, s), feedPath, paced(t, connectgate.ClientOptions{Pacer: p}, connect.WithGRPC())...)
		stream, err := c.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("")))
		if err != nil || !stream.Receive() {
			t.Fatal(name, err)
		}
		if n := p.Stats().Operations[0].InFlight; n != 1 {
			t.Errorf("%s: %d in flight while the stream is open, want 1", name, n)
		}
		if name == "closed" { // Close reads to the end
			close(leave)
		}
		end(stream, cancel)
		until(t, name+": the slot is free", func() bool { return p.Stats().Operations[0].InFlight == 0 })
	}
}
