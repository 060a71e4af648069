package rpc

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafegrpc"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"google.golang.org/grpc"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

const (
	method = "/bench.Echo/Call"
	slots  = 512
	plenty = 1 << 30 // a rate that no measurement reaches
)

// subject is something that stands before a handler.
type subject struct {
	name, does string
	unary      grpc.UnaryServerInterceptor // nil: nothing
	tap        grpc.ServerOption           // in place of an interceptor; nil: none
}

func subjects() []subject {
	keyed, gate := newGate(grpcgate.APIKey("X-API-Key", anyKey), nil), newGate(byHeader, nil)
	routed := newGate(byHeader, map[string]admission.Rule{method: admission.AtLevel(priority.High), "/bench.Other/": admission.AtLevel(priority.Batch)})
	one := grpcgate.Options{Metadata: []string{"x-api-key"}}
	rate := ratelimiter.NewBursty[any](plenty, time.Second)
	return []subject{
		{name: "nothing", does: "the handler alone"},
		{name: "headgate, Admit and Release", does: "the yardstick: no request, no metadata", unary: byHand(gate)},
		{name: "headgate, by grpcgate.APIKey", does: "caller, rate, queue, adaptive slots", unary: grpcgate.New(keyed, grpcgate.Options{Metadata: []string{}}).Unary()},
		{name: "headgate", does: "the same, by caller.APIKey and one key of the metadata", unary: grpcgate.New(gate, one).Unary()},
		{name: "headgate, with routes", does: "the same, ranked by method", unary: grpcgate.New(routed, one).Unary()},
		{name: "headgate, all metadata", does: "the same, and all keys of the metadata", unary: grpcgate.New(gate, grpcgate.Options{}).Unary()},
		{name: "failsafe-go bulkhead", does: "a fixed number in flight; no caller, no rate", unary: failsafegrpc.NewUnaryServerInterceptor[any](bulkhead.New[any](slots))},
		{name: "failsafe-go adaptive", does: "an adaptive number in flight; no caller, no rate", unary: failsafegrpc.NewUnaryServerInterceptor[any](adaptivelimiter.NewWithDefaults[any]())},
		{name: "failsafe-go rate and bulkhead", does: "one rate for all, a fixed number in flight", unary: failsafegrpc.NewUnaryServerInterceptor[any](rate, bulkhead.New[any](slots))},
		{name: "failsafe-go rate, in the tap", does: "one rate for all, before the call is read: as its documents advise", tap: inTap(rate)},
	}
}

func anyKey(context.Context, string) (caller.Caller, bool) { return caller.Caller{}, true }

var byHeader = caller.APIKey("X-API-Key", anyKey)

func newGate(identify caller.Identify, routes map[string]admission.Rule) *admission.Gate {
	return admission.MustNew(admission.Options{
		Identify: identify,
		Rate:     ratelimit.PerKey(plenty, plenty),
		Pool:     admission.Pool{Limit: shed.Throughput{Max: slots}},
		Routes:   routes,
	})
}

func byHand(gate *admission.Gate) grpc.UnaryServerInterceptor {
	known := admission.Ticket{Caller: caller.Caller{Key: "ann", Space: "key", Verified: true}}
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		permit, err := gate.Admit(ctx, known)
		if err != nil {
			return nil, err
		}
		defer permit.Release(shed.Served)
		return handler(ctx, req)
	}
}

func inTap(p failsafe.Policy[any]) grpc.ServerOption {
	return grpc.InTapHandle(failsafegrpc.NewServerInHandle(p))
}
