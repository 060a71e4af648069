package main

import (
	"context"
	"net/http"
	"strconv"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
)

// What the upstream counts, for its 429 to slow down whoever shares it.
const (
	throttleNone   = "none" // its clients: a 429 is for the client that caused it
	throttleHost   = "host" // everything that it is sent
	throttleRoute  = "route"
	throttleCaller = "caller"
)

// What is sent again after a failure.
const (
	retryNone   = "none"
	retryUnsent = "unsent" // what never left
	retrySafe   = "safe"   // what may be repeated without harm
)

// counted returns the key of what the upstream counts by, and the handler that notes
// what the key needs; nil for none.
func counted(c Config) (func(*http.Request) ratelimit.Key, func(http.Handler) http.Handler) {
	switch c.Upstream.Signals.Throttle {
	case throttleRoute:
		return byRoute, routesOf(c).note
	case throttleCaller:
		return byCaller, nil
	}
	return outbound.ByHost, nil
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

// routes tells the pattern of a request, as the client sent it.
type routes struct{ *http.ServeMux }

func routesOf(c Config) routes {
	mux := http.NewServeMux()
	for pattern := range c.Gate.Routes {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	return routes{mux}
}

func (m routes) note(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := m.Handler(r)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), routeKey{}, pattern)))
	})
}
