// Package pages holds the code that the pages under docs/ show. Its tests run it.
package pages

import (
	"net/http"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// behindProxies returns the ways to find the client behind what stands in front.
func behindProxies() map[string]caller.ClientIP {
	// proxies: begin
	direct := caller.ClientIP{} // nothing in front: the peer is the client

	listed := caller.ClientIP{ // your own proxies, by address
		Trusted: []string{"10.0.0.0/8", "fd00::/8"},
	}
	counted := caller.ClientIP{ // a cloud load balancer with changing addresses, then nginx
		Hops: 2,
	}
	standard := caller.ClientIP{ // proxies that write RFC 7239
		Trusted: []string{"10.0.0.0/8"},
		Header:  "Forwarded",
	}
	single := caller.ClientIP{ // a proxy that overwrites one header on every request
		Trusted: []string{"10.0.0.0/8"},
		Header:  "X-Real-IP",
	}
	socket := caller.ClientIP{ // a proxy on the same machine, over a Unix socket
		Trusted: []string{"unix"},
	}
	// proxies: end
	return map[string]caller.ClientIP{
		"direct": direct, "listed": listed, "counted": counted, "standard": standard, "single": single, "socket": socket,
	}
}

// byGateway identifies callers where something in front has done so already.
func byGateway() *admission.Gate {
	// gateway: begin
	gate := admission.MustNew(admission.Options{
		Identify:  caller.Header("X-User-ID"),                       // the gateway sets it, and removes what clients send
		ClientIP:  caller.ClientIP{Trusted: []string{"10.0.0.0/8"}}, // for callers without one
		Rate:      ratelimit.PerKey(50, 100),
		Anonymous: ratelimit.PerKey(5, 20),
	})
	// gateway: end
	return gate
}

// payments calls a service with a quota of 100 calls a second.
func payments(base http.RoundTripper) *http.Client {
	// client: begin
	transport := outbound.MustNew(outbound.Options{
		Base:           base,                      // nil: http.DefaultTransport
		Rate:           ratelimit.PerKey(100, 20), // the quota, shared by all who use the client
		InFlight:       shed.Throughput{Max: 64},  // calls in flight to each service
		MaxWait:        2 * time.Second,           // longest wait for a turn
		AttemptTimeout: time.Second,               // of each attempt, not of the call
		LevelHeader:    "X-Level",                 // passes the caller's level on
	})
	client := &http.Client{Transport: transport}
	// client: end
	return client
}

// shortest is the client of the front page.
func shortest() *http.Client {
	// readme: begin
	client := &http.Client{Transport: outbound.MustNew(outbound.Options{
		Rate:     ratelimit.PerKey(100, 20), // what their quota counts: attempts
		InFlight: shed.Fixed(64),
	})}
	// readme: end
	return client
}

// relaying is a handler that answers for a service behind it.
func relaying(client *http.Client, service string) http.HandlerFunc {
	// relay: begin
	handler := func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, service, nil)
		if err != nil {
			http.Error(w, "bad gateway", http.StatusBadGateway)
			return
		}
		resp, err := client.Do(req)
		if err == nil {
			defer resp.Body.Close()
		}
		if outbound.Relay(w.Header(), resp, err) { // refused, there or on this side: marked as retried already
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if err != nil { // broken, or out of time
			http.Error(w, "bad gateway", http.StatusBadGateway)
			return
		}
		w.WriteHeader(resp.StatusCode)
	}
	// relay: end
	return handler
}

// passedOn is the gate of a service whose callers use outbound.
func passedOn() *admission.Gate {
	// passed: begin
	gate := admission.MustNew(admission.Options{
		Deadline: admission.TimeoutHeader("X-Timeout", 5*time.Second), // outbound sends what is left of its own
		HTTP:     admission.HTTP{LevelHeader: "X-Level"},              // lowers a level, never raises one
	})
	// passed: end
	return gate
}

// trying lets numbers be tried on real traffic.
func trying() *admission.Gate {
	// shadow: begin
	gate := admission.MustNew(admission.Options{
		Rate:   ratelimit.PerKey(50, 100),
		Pool:   admission.Pool{Limit: shed.Throughput{Max: 64}},
		Shadow: admission.ShadowRate | admission.ShadowCapacity, // decide and count, let everybody through
	})
	// shadow: end
	return gate
}

// routes gives costs and caps to routes.
func routes(gate *admission.Gate, search, export, render http.Handler) *http.ServeMux {
	// routes: begin
	mux := http.NewServeMux()
	mux.Handle("GET /search", gate.At(priority.Normal)(search))
	mux.Handle("GET /export", gate.At(priority.Batch, admission.Cost(5))(export))                                          // five tokens, one slot
	mux.Handle("POST /render", gate.At(priority.Normal, admission.InPool("farm"), admission.Timeout(time.Minute))(render)) // another resource, another pool
	mux.Handle("GET /report", gate.At(priority.Batch, admission.Cap(4))(export))                                           // never more than four at once
	// routes: end
	return mux
}
