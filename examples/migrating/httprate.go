package migrating

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/window"
)

func httprateBefore(search http.HandlerFunc) http.Handler {
	// httprate-before: begin
	r := chi.NewRouter()
	r.Use(middleware.ClientIPFromXFF("10.0.0.0/8"))
	r.Use(httprate.LimitBy(100, time.Minute, func(r *http.Request) (string, error) {
		return httprate.CanonicalizeIP(middleware.GetClientIP(r.Context())), nil
	}))
	r.Get("/search", search)
	// httprate-before: end
	return r
}

func httprateAfter(search http.HandlerFunc) http.Handler {
	// httprate-after: begin
	gate := admission.MustNew(admission.Options{
		ClientIP: caller.ClientIP{Trusted: []string{"10.0.0.0/8"}},
		Rate:     ratelimit.PerKey(100.0/60, 100), // 100 a minute, all at once if need be
		HTTP:     admission.HTTP{RateLimitHeaders: admission.XRateLimit},
	})
	r := chi.NewRouter()
	r.With(gate.At(priority.Normal)).Get("/search", search)
	// httprate-after: end
	return r
}

func quotaBefore(counter httprate.LimitCounter, byUser httprate.KeyFunc) func(http.Handler) http.Handler {
	// quota-before: begin
	daily := httprate.LimitBy(10_000, 24*time.Hour, byUser, httprate.WithLimitCounter(counter))
	// quota-before: end
	return daily
}

func quotaAfter(counter httprate.LimitCounter, byUser httprate.KeyFunc) *admission.Gate {
	// quota-after: begin
	gate := admission.MustNew(admission.Options{
		Identify: caller.KeyFunc(byUser), // any httprate.KeyFunc
		Quota:    window.MustNew(window.Options{Quota: 10_000, Length: 24 * time.Hour, Counter: counter}),
	})
	// quota-after: end
	return gate
}
