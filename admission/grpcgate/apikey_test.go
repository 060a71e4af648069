package grpcgate_test

import (
	"context"
	"net/http"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/grpcgate"
	"github.com/headgate-go/headgate/ratelimit"
)

func TestAPIKeysAreReadFromTheMetadata(t *testing.T) {
	known := func(_ context.Context, key string) (caller.Caller, bool) {
		return caller.Caller{Key: key}, key != "unknown"
	}
	identify := grpcgate.APIKey("X-API-Key", known)
	gate := gateOf(t, admission.Options{Identify: identify, Rate: ratelimit.PerKey(0.001, 1)})
	conn := dial(t, gate, &service{}, grpcgate.Options{Metadata: []string{}})
	for _, c := range []struct {
		keys []string
		want codes.Code
	}{
		{[]string{"ann"}, codes.OK},
		{[]string{"ann"}, codes.ResourceExhausted},
		{[]string{"ben"}, codes.OK},
		{nil, codes.OK},                                   // by its address
		{[]string{"unknown"}, codes.ResourceExhausted},    // the same address
		{[]string{"eve", "ann"}, codes.ResourceExhausted}, // there is no telling which was meant
	} {
		ctx := t.Context()
		for _, key := range c.keys {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-api-key", key)
		}
		if got := status.Code(ask(ctx, conn)); got != c.want {
			t.Errorf("keys %v: %v, want %v", c.keys, got, c.want)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", "zoe")
	if c, err := identify(r); err != nil || c.Key != "zoe" || !c.Verified {
		t.Errorf("by HTTP: %+v, %v", c, err)
	}
}
