// Tiers sells limits: plans with a rate, a burst, a cost factor, a level and a share
// of the slots; a daily quota; costly routes; and headers that tell clients where
// they stand. README.md walks through it with curl.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/examples/internal/demo"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/window"
	"github.com/headgate-go/headgate/shed"
)

// customers stands for your key table.
var customers = map[string]caller.Caller{
	"free-key":     {Key: "fred", Plan: "free"},
	"trial-key":    {Key: "trudy", Plan: "trial"},
	"pro-key":      {Key: "acme", Plan: "pro"},
	"internal-key": {Key: "nightly", Plan: "internal"},
}

func lookup(_ context.Context, key string) (caller.Caller, bool) {
	c, known := customers[key]
	return c, known
}

// settings are what an operator may change while the service runs.
type settings struct {
	freeBurst int
	shadow    admission.Layers
}

// options is the whole price list.
func options(s settings) admission.Options {
	return admission.Options{
		Identify: caller.APIKey("X-API-Key", lookup),
		Address:  ratelimit.PerKey(20, 40, ratelimit.Name("address")), // before the look-up: made-up keys buy none
		Rate: ratelimit.All(
			ratelimit.Tiers(
				ratelimit.Plan{Rate: rate.Every(12 * time.Second), Burst: 5}, // nobody we know: 5 a minute by address
				map[string]ratelimit.Plan{
					"free":     {Rate: 1, Burst: s.freeBurst, Share: 0.25},
					"trial":    {Rate: 5, Burst: 10, Cost: 2},
					"pro":      {Rate: 10, Burst: 20, Level: "high", Share: 0.75},
					"internal": {Allow: ratelimit.AllowEverything, Level: "critical"},
				}, ratelimit.Name("plan")),
			ratelimit.Global(100, 200), // everybody together
		),
		Quota: window.MustNew(window.Options{Quota: 1_000, Length: 24 * time.Hour, Name: "daily", Plans: map[string]int{
			"trial": 6, "pro": 100_000, "internal": window.Unlimited,
		}}),
		Routes: map[string]admission.Rule{
			"GET /report": admission.AtLevel(priority.Batch, admission.Cost(5)),
			"GET /export": admission.AtLevel(priority.Batch, admission.Cost(10),
				admission.Rate(ratelimit.Global(rate.Every(30*time.Second), 20, ratelimit.Name("exports")))),
			"GET /healthz": admission.AtLevel(priority.Normal, admission.Exempt()),
		},
		Pool:   admission.Pool{Limit: shed.Fixed(8), MaxWait: admission.NoWait},
		HTTP:   admission.HTTP{RateLimitHeaders: admission.IETFDraft11 | admission.XRateLimit},
		Shadow: s.shadow,
	}
}

// api is the service itself; the gate stands in front of all of it.
func api() http.Handler {
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, s) }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", text("hello"))
	mux.HandleFunc("GET /report", text("a report"))
	mux.HandleFunc("GET /export", text("an export"))
	mux.HandleFunc("GET /healthz", text("ok"))
	mux.HandleFunc("GET /me", me)
	mux.HandleFunc("GET /search", search)
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Second)
		fmt.Fprintln(w, "done")
	})
	return mux
}

// me tells callers who they are.
func me(w http.ResponseWriter, r *http.Request) {
	v, _ := admission.FromContext(r.Context())
	fmt.Fprintf(w, "%s, plan %q, level %v\n", v.Caller.Key, v.Caller.Plan, v.Level)
}

// search knows what it cost when it is done: a token for every ten rows.
func search(w http.ResponseWriter, r *http.Request) {
	rows, _ := strconv.Atoi(r.FormValue("rows"))
	admission.Charge(r.Context(), 1+min(max(rows, 0), 1000)/10)
	fmt.Fprintf(w, "%d rows\n", rows)
}

// reload changes the limits of the running gate; balances are kept.
func reload(gate *admission.Gate) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := settings{freeBurst: 5}
		if n := r.FormValue("free-burst"); n != "" {
			s.freeBurst, _ = strconv.Atoi(n)
		}
		if r.FormValue("shadow") == "rate" {
			s.shadow = admission.ShadowRate
		}
		if err := gate.Update(options(s)); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		fmt.Fprintln(w, "in force")
	}
}

// service is the gate in front of the api, and the operator's door beside it.
func service() (http.Handler, *admission.Gate) {
	gate := admission.MustNew(options(settings{freeBurst: 5}))
	mux := http.NewServeMux()
	mux.Handle("/", gate.Handler(api()))
	mux.HandleFunc("POST /operator/limits", reload(gate)) // yours would be behind a login
	return mux, gate
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	h, gate := service()
	fmt.Printf("listening on http://%s; try\n\n  curl -i -H 'X-API-Key: free-key' http://%s/hello\n\n", *addr, *addr)
	log.Fatal(demo.Serve(*addr, h, gate))
}
