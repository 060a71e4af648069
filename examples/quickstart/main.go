// Quickstart is the whole stack on a chi router: three routes over a simulated
// database that is 8 wide and takes 100 ms.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/dashboard"
	"github.com/headgate-go/headgate/examples/internal/demo"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// lookup stands for your key table.
func lookup(_ context.Context, key string) (caller.Caller, bool) {
	tenant, known := map[string]string{"acme-key": "acme", "globex-key": "globex"}[key]
	return caller.Caller{Key: tenant, Alias: tenant, Plan: "demo", Verified: known}, known
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	db := demo.NewDatabase(8, 100*time.Millisecond)
	checkout, search, export := db.Handler("paid"), db.Handler("found"), db.Handler("exported")

	// quickstart: begin
	gate := admission.MustNew(admission.Options{
		Identify: caller.APIKey("X-API-Key", lookup),                  // who is asking; unknown keys count against their address
		Rate:     ratelimit.PerKey(50, 100),                           // each: 50 req/s, bursts of 100
		Deadline: admission.TimeoutHeader("X-Timeout", 5*time.Second), // the client's, 5 s at most
		// Slots in all, learned from the work, and the longest stay in the fair queue.
		Pool:     admission.Pool{Limit: shed.Throughput{Max: 512}, MaxWait: 250 * time.Millisecond},
		Observer: metrics.New(prometheus.DefaultRegisterer),
	})

	r := chi.NewRouter()
	r.Handle("/metrics", promhttp.Handler()) // outside the gate: never shed
	r.With(gate.At(priority.Critical)).Post("/checkout", checkout)
	r.With(gate.At(priority.Normal)).Get("/search", search)
	r.With(gate.At(priority.Batch, admission.Cost(5))).Get("/export", export)
	// quickstart: end

	r.Mount("/headgate", dashboard.Handler(dashboard.Gate(gate))) // the live page, likewise
	demo.Announce(*addr, gate, "/headgate/", "/metrics")
	if err := demo.Serve(*addr, r, gate); err != nil {
		log.Fatal(err)
	}
}
