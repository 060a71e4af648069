package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// Two gates of one name are one on the scrape; each visit of a route is in one outcome.
func TestRequestsAreCountedByRoute(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	for range 2 {
		gate := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0.001, 3), Observer: m})
		mux := http.NewServeMux()
		mux.Handle("GET /items/{id}", gate.At(priority.Normal)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.PathValue("id") == "2" {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})))
		mux.Handle("GET /health", gate.At(priority.Normal, admission.Exempt())(http.HandlerFunc(ok)))
		for _, path := range []string{"/items/1", "/items/2", "/items/3", "/items/4", "/items/5", "/health", "/items/<script>"} {
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		}
	}
	s := read(t, reg)
	const family, items = "headgate_route_requests_total", "route=GET /items/{id}"
	s.want(t, 4, family, items, "outcome=served")
	s.want(t, 2, family, items, "outcome=failed")
	s.want(t, 6, family, items, "outcome=refused")
	s.want(t, 12, family, items)
	s.want(t, 2, family, "route=GET /health", "outcome=exempt")
	s.want(t, 14, family)
}
