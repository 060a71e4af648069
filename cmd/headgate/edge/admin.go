package edge

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate-go/headgate/dashboard"
)

// admin serves what operators and probes ask for. It is outside of the gate, so
// that it answers when nothing else does; keep it off the public network.
func (e *edge) admin() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{}))
	mux.Handle("/headgate/", dashboard.Handler(
		dashboard.Title("edge to "+e.settings.Upstream.parsed.Redacted()),
		dashboard.Gate(e.gate), dashboard.Outbound("upstream", e.outbound), dashboard.InForce(e.policyText)))
	mux.Handle("GET /{$}", http.RedirectHandler("/headgate/", http.StatusSeeOther))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", e.ready)
	mux.HandleFunc("GET /policy", e.showPolicy)
	mux.HandleFunc("PATCH /policy", e.changePolicy)
	mux.HandleFunc("PUT /policy", e.changePolicy)
	// A page that has come by the token may still not use it from another site.
	own := http.NewCrossOriginProtection().Handler(mux)
	return knownHosts(own, append([]string{e.settings.Admin}, e.settings.Hosts...))
}

// ready says whether clients should be sent here. An upstream or a store that is
// away is no reason to say no: every other edge would say the same, and there
// would be no edge left to tell clients when to come back.
func (e *edge) ready(w http.ResponseWriter, _ *http.Request) {
	if e.leaving.Load() {
		http.Error(w, "leaving", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
	for _, warning := range e.store.Warnings() {
		fmt.Fprintln(w, "warning:", warning)
	}
}
