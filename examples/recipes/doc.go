// Package recipes puts one gate before the routers and into the places that
// services have: gin, echo, connect-go, an http.Server with its timeouts, probes of
// Kubernetes, and the proxies of others in front. Its tests run them; copy what you
// need.
//
// All of these are net/http underneath. One way fits them all: the gate around the
// whole router, with the table Options.Routes to rank requests before any routing.
// Where levels belong beside the routes, the adapters here put [admission.Gate.At]
// into the router's own middleware.
package recipes
