package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/shed"
)

func ExampleNew() {
	reg := prometheus.NewRegistry()
	gate := admission.MustNew(admission.Options{
		Name: "edge", Pool: admission.Pool{Limit: shed.Fixed(8)}, Observer: metrics.New(reg),
	})
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{})) // outside of the gate
	mux.Handle("/", gate.Handler(http.NotFoundHandler()))

	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/search", nil))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, `outcome="ignored"`) && strings.Contains(line, `level="normal"`) ||
			strings.HasPrefix(line, "headgate_limit{") {
			fmt.Print(line)
		}
	}
	// Output:
	// headgate_limit{gate="edge",pool=""} 8
	// headgate_requests_total{gate="edge",level="normal",outcome="ignored",pool="",reason="admitted"} 1
}
