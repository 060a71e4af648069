package migrating

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

func throttleBefore(checkout, export http.HandlerFunc) http.Handler {
	// throttle-before: begin
	r := chi.NewRouter()
	r.Use(middleware.ThrottleBacklog(64, 1024, 10*time.Second))
	r.Post("/checkout", checkout)
	r.Get("/export", export)
	// throttle-before: end
	return r
}

func throttleSame(checkout, export http.HandlerFunc) http.Handler {
	// throttle-same: begin
	gate := admission.MustNew(admission.Options{
		Pool: admission.Pool{Limit: shed.Fixed(64), MaxWaiting: 1024, MaxWait: 10 * time.Second},
	})
	r := chi.NewRouter()
	r.With(gate.At(priority.Normal)).Post("/checkout", checkout)
	r.With(gate.At(priority.Normal)).Get("/export", export)
	// throttle-same: end
	return r
}

func throttleAfter(checkout, export http.HandlerFunc) http.Handler {
	// throttle-after: begin
	gate := admission.MustNew(admission.Options{
		Pool: admission.Pool{
			Limit:   shed.Throughput{Max: 256}, // found from the work, instead of 64
			MaxWait: 250 * time.Millisecond,    // longer than that no client waits
		},
		Deadline: admission.TimeoutHeader("X-Timeout", 5*time.Second), // work that is late is not started
	})
	r := chi.NewRouter()
	r.With(gate.At(priority.Critical)).Post("/checkout", checkout)
	r.With(gate.At(priority.Batch)).Get("/export", export)
	// throttle-after: end
	return r
}
