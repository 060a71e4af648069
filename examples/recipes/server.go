package recipes

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/admission"
)

// Server is an http.Server whose timeouts leave nobody holding a connection for
// nothing.
func Server(addr string, handler http.Handler) *http.Server {
	// server: begin
	server := &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,  // the head of a request, from its first byte: slowloris ends here
		ReadTimeout:       30 * time.Second, // head and body; leave it out where uploads are long, and bound reads (see docs/streams.md)
		WriteTimeout:      30 * time.Second, // from the head to the last byte of the answer; the gate's waits end before it
		IdleTimeout:       75 * time.Second, // above the load balancer's, so that it closes first
		MaxHeaderBytes:    64 << 10,
	}
	// server: end
	return server
}

// Probes are what Kubernetes asks for. They stand outside of the gate: a full
// process is alive, and ready.
type Probes struct{ leaving atomic.Bool }

// Register adds the probes to mux.
func (p *Probes) Register(mux *http.ServeMux) {
	// probes: begin
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if p.leaving.Load() {
			http.Error(w, "leaving", http.StatusServiceUnavailable)
		}
	})
	// probes: end
}

// Leave ends a process that Kubernetes, or any load balancer with health checks,
// has told to go. It blocks for notice and then at most for grace; the sum belongs
// into terminationGracePeriodSeconds, with a few seconds on top.
func (p *Probes) Leave(gate *admission.Gate, server *http.Server, notice, grace time.Duration) error {
	// leave: begin
	p.leaving.Store(true) // not ready: new connections go elsewhere, soon
	time.Sleep(notice)    // until everybody has noticed, all are served
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(gate.Drain(ctx), server.Shutdown(ctx)) // then newcomers hear 503, and running work ends
	// leave: end
}
