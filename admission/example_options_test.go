package admission_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func ExampleAtLevel() {
	gate := admission.MustNew(admission.Options{ // at the very edge, before anything is routed
		Rate: ratelimit.PerKey(0, 6), Pool: admission.Pool{Limit: shed.Fixed(64)},
		Routes: map[string]admission.Rule{
			"GET /export":  admission.AtLevel(priority.Batch, admission.Cost(5)),
			"GET /healthz": admission.AtLevel(priority.Normal, admission.Exempt()),
		},
	})
	h := gate.Handler(hello)
	fmt.Println(ask(h, "/e%78port"), "costs five, however it is spelled")
	fmt.Println(ask(h, "/anything"), "costs one")
	fmt.Println(ask(h, "/healthz"), "costs nothing")
	fmt.Println(ask(h, "/anything"))
	// Output:
	// 200 costs five, however it is spelled
	// 200 costs one
	// 200 costs nothing
	// 429 not-admissible
}

func ExampleHeaders() {
	gate := admission.MustNew(admission.Options{
		Rate: ratelimit.PerKey(50, 100, ratelimit.Name("tenant")),
		HTTP: admission.HTTP{RateLimitHeaders: admission.IETFDraft11 | admission.XRateLimit},
	})
	w := httptest.NewRecorder()
	gate.Handler(hello).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	for _, name := range []string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		fmt.Printf("%s: %s\n", name, w.Header().Get(name))
	}
	// Output:
	// RateLimit-Policy: "tenant";q=100;w=2
	// RateLimit: "tenant";r=99;t=1
	// X-RateLimit-Limit: 100
	// X-RateLimit-Remaining: 99
	// X-RateLimit-Reset: 1
}

func ExampleLayers() {
	gate := admission.MustNew(admission.Options{
		Rate:   ratelimit.PerKey(0, 1),
		Shadow: admission.ShadowRate, // try the number on real traffic
	})
	h := gate.Handler(hello)
	fmt.Println(ask(h, "/"), ask(h, "/"), ask(h, "/"))
	shadowed := gate.Stats().Shadowed[priority.Normal.Index()]
	fmt.Println("would have refused", shadowed[shed.NotAdmissible]+shadowed[shed.RateLimited])
	// Output:
	// 200 200 200
	// would have refused 2
}

func ExampleHTTP() {
	gate := admission.MustNew(admission.Options{HTTP: admission.HTTP{DisableResponseWrapping: true}}) // the handler gets the server's own writer
	w := httptest.NewRecorder()
	gate.Handler(http.HandlerFunc(func(got http.ResponseWriter, _ *http.Request) {
		fmt.Println(got == http.ResponseWriter(w))
	})).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	// Output: true
}

func ExamplePool() {
	gate := admission.MustNew(admission.Options{
		Pool:  admission.Pool{Limit: shed.Fixed(64)},
		Pools: map[string]admission.Pool{"db": {Limit: shed.Fixed(8), MaxWait: 100 * time.Millisecond, MaxWaiting: 16}},
	})
	reports := gate.At(priority.Batch, admission.InPool("db"))(hello)
	fmt.Println(ask(reports, "/report"))
	for _, p := range gate.Stats().Pools {
		fmt.Printf("%q: %d slots, %d admitted\n", p.Name, p.Limit, p.Admitted[priority.Batch.Index()])
	}
	// Output:
	// 200
	// "": 64 slots, 0 admitted
	// "db": 8 slots, 1 admitted
}

func ExampleAtLeast() {
	vip := caller.Caller{Key: "acme", Verified: true, Level: caller.AtLeast(priority.High)}
	trial := caller.Caller{Key: "fred", Verified: true, Level: caller.AtMost(priority.Batch)}
	for _, who := range []caller.Caller{vip, trial} {
		gate := admission.MustNew(admission.Options{
			Identify: func(*http.Request) (caller.Caller, error) { return who, nil },
		})
		ask(gate.At(priority.Normal)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			v, _ := admission.FromContext(r.Context())
			fmt.Println(v.Caller.Key, v.Level)
		})), "/")
	}
	// Output:
	// acme high
	// fred batch
}

func ExampleFromContext() {
	gate := admission.MustNew(admission.Options{Identify: caller.Header("X-User")})
	h := gate.At(priority.High)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		v, _ := admission.FromContext(r.Context())
		fmt.Println(v.Caller.Key, v.Caller.Verified, v.Level)
	}))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-User", "ann")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: ann true high
}

func ExampleCharge() {
	gate := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 10)})
	h := gate.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		rows := 9
		admission.Charge(r.Context(), rows) // it was admitted for 1
	}))
	fmt.Println(ask(h, "/"), ask(h, "/"), ask(h, "/")) // nine, then nine more into debt
	// Output: 200 200 429 not-admissible
}

func ExampleCost() {
	gate := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 10)})
	h := gate.At(priority.Batch, admission.Cost(5))(hello)
	fmt.Println(ask(h, "/"), ask(h, "/"), ask(h, "/"))
	// Output: 200 200 429 not-admissible
}

func ExampleCostOf() {
	gate := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 10)})
	h := gate.At(priority.Normal, admission.CostOf(func(r *http.Request) int {
		if r.URL.Query().Has("all") {
			return 8
		}
		return 1
	}))(hello)
	fmt.Println(ask(h, "/?all"), ask(h, "/"), ask(h, "/?all"))
	// Output: 200 200 429 not-admissible
}

func ExampleRate() {
	gate := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 100)})
	logins := gate.At(priority.High, admission.Rate(ratelimit.PerKey(0, 1, ratelimit.Name("logins"))))(hello)
	fmt.Println(ask(logins, "/login"), ask(logins, "/login")) // its own limit, besides the gate's
	// Output: 200 429 not-admissible
}

func ExampleExempt() {
	gate := admission.MustNew(admission.Options{})
	health := gate.At(priority.Normal, admission.Exempt())(hello)
	_ = gate.Close()
	fmt.Println(ask(health, "/healthz"), ask(gate.Handler(hello), "/"))
	// Output: 200 503 draining
}

func ExampleCap() {
	gate := admission.MustNew(admission.Options{})
	var h http.Handler
	h = gate.At(priority.Normal, admission.Cap(1))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/outer" {
			fmt.Println("meanwhile:", ask(h, "/inner"))
		}
	}))
	fmt.Println(ask(h, "/outer"))
	// Output:
	// meanwhile: 503 route-cap
	// 200
}

func ExampleStream() {
	gate := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1)}})
	events := gate.At(priority.Normal, admission.Stream(100))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Println("in a slot:", gate.Stats().InFlight(), gate.Stats().Streams)
		w.(http.Flusher).Flush() // from here on it is a stream
		fmt.Println("streaming:", gate.Stats().InFlight(), gate.Stats().Streams)
	}))
	ask(events, "/events")
	// Output:
	// in a slot: 1 0
	// streaming: 0 1
}

func ExampleTimeout() {
	gate := admission.MustNew(admission.Options{})
	h := gate.At(priority.Normal, admission.Timeout(time.Minute))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		at, ok := r.Context().Deadline()
		fmt.Println(ok, time.Until(at) <= time.Minute)
	}))
	ask(h, "/")
	// Output: true true
}
