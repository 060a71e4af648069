package upstream

import (
	"context"
	"net/http"
	"strconv"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
)

// What the upstream counts, for its 429 to slow down the requests that share the count.
const (
	ThrottleNone   = "none" // its clients: a 429 is for the client that caused it
	ThrottleHost   = "host" // everything that it is sent
	ThrottleRoute  = "route"
	ThrottleCaller = "caller"
)

// Throttles and Retries are the words there are.
var (
	Throttles = []string{ThrottleNone, ThrottleHost, ThrottleRoute, ThrottleCaller}
	Retries   = []string{RetryNone, RetryUnsent, RetrySafe}
)

// What is sent again after a failure.
const (
	RetryNone   = "none"
	RetryUnsent = "unsent" // what never left
	RetrySafe   = "safe"   // what may be repeated without harm
)

// Key returns what the upstream counts a request by, for a word of Throttles.
func Key(throttle string) func(*http.Request) ratelimit.Key {
	switch throttle {
	case ThrottleRoute:
		return byRoute
	case ThrottleCaller:
		return byCaller
	}
	return outbound.ByHost
}

func byCaller(r *http.Request) ratelimit.Key {
	key := outbound.ByHost(r)
	visitor, _ := admission.FromContext(r.Context())
	key.ID = strconv.Itoa(len(visitor.Caller.Space)) + visitor.Caller.Space + visitor.Caller.Key
	return key
}

func byRoute(r *http.Request) ratelimit.Key {
	key := outbound.ByHost(r)
	key.ID, _ = r.Context().Value(routeKey{}).(string)
	return key
}

type routeKey struct{}

// Patterns returns what tells the pattern of a request. The patterns must be right and
// without conflict.
func Patterns[V any](patterns map[string]V) *http.ServeMux {
	mux := http.NewServeMux()
	for pattern := range patterns {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	return mux
}

// Routes returns a handler that notes the pattern of a request as the client sent it, by
// the patterns in force, which ThrottleRoute asks for, and passes it to next.
func Routes(patterns func() *http.ServeMux, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := patterns().Handler(r)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routeKey{}, pattern)))
	})
}
