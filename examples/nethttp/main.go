// Nethttp is the quickstart without a router library: http.ServeMux only.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/examples/internal/demo"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// lookup stands for your key table.
func lookup(_ context.Context, key string) (caller.Caller, bool) {
	tenant, known := map[string]string{"acme-key": "acme", "globex-key": "globex"}[key]
	return caller.Caller{Key: tenant, Verified: known}, known
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	db := demo.NewDatabase(8, 100*time.Millisecond)

	gate := admission.MustNew(admission.Options{
		Identify: caller.APIKey("X-API-Key", lookup),
		Rate:     ratelimit.PerKey(50, 100),
		Pool:     admission.Pool{Limit: shed.Throughput{Max: 512}, MaxWait: 250 * time.Millisecond},
		Deadline: admission.TimeoutHeader("X-Timeout", 5*time.Second),
	})

	mux := http.NewServeMux()
	mux.Handle("POST /checkout", gate.At(priority.Critical)(db.Handler("paid")))
	mux.Handle("GET /search", gate.At(priority.Normal)(db.Handler("found")))
	mux.Handle("GET /export", gate.At(priority.Batch, admission.Cost(5))(db.Handler("exported")))

	demo.Announce(*addr, gate)
	if err := demo.Serve(*addr, mux, gate); err != nil {
		log.Fatal(err)
	}
}
