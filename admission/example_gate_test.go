package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// ask sends one GET and returns the status and the reason of a refusal.
func ask(h http.Handler, path string) string {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if reason := w.Header().Get("Headgate-Reason"); reason != "" {
		return fmt.Sprint(w.Code, " ", reason)
	}
	return fmt.Sprint(w.Code)
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })

func ExampleNew() {
	_, err := admission.New(admission.Options{Rate: ratelimit.PerKey(-1, 100), CallerCap: -2})
	fmt.Println(err)
	// Output:
	// admission: Options.Rate: ratelimit: limit "default": rate is -1, must not be negative
	// Options.CallerCap = -2: must not be negative
}

func ExampleMustNew() {
	gate := admission.MustNew(admission.Options{
		Rate: ratelimit.PerKey(rate.Every(time.Minute), 2),                                      // each address: one a minute, bursts of 2
		Pool: admission.Pool{Limit: shed.Throughput{Max: 512}, MaxWait: 250 * time.Millisecond}, // longest stay in the queue
	})
	h := gate.Handler(hello)
	fmt.Println(ask(h, "/"), ask(h, "/"), ask(h, "/"))
	// Output: 200 200 429 rate-limited
}

func ExampleGate_Handler() {
	gate := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(64)}})
	server := httptest.NewServer(gate.Handler(hello)) // everything, at Normal
	defer server.Close()
	res, err := http.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = res.Body.Close()
	fmt.Println(res.StatusCode, gate.Stats().Count(shed.Admitted))
	// Output: 200 1
}

func ExampleGate_At() {
	gate := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 6), Pool: admission.Pool{Limit: shed.Fixed(64)}})
	mux := http.NewServeMux()
	mux.Handle("/checkout", gate.At(priority.Critical)(hello))
	mux.Handle("/export", gate.At(priority.Batch, admission.Cost(5))(hello))
	fmt.Println(ask(mux, "/checkout"))
	fmt.Println(ask(mux, "/export"))
	fmt.Println(ask(mux, "/checkout")) // six tokens are gone, and none comes back
	// Output:
	// 200
	// 200
	// 429 not-admissible
}

func ExampleGate_Admit() {
	gate := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}})
	work := admission.Ticket{Caller: caller.Caller{Key: "nightly", Verified: true}, Level: priority.Batch}

	permit, err := gate.Admit(context.Background(), work)
	fmt.Println("first:", err)

	_, err = gate.Admit(context.Background(), work)
	var rejection *admission.Rejection
	fmt.Println("second:", errors.Is(err, shed.Capacity), errors.As(err, &rejection), rejection.RetryAfter > 0)

	permit.Release(shed.Served)
	// Output:
	// first: <nil>
	// second: true true true
}

func ExamplePermit_Charge() {
	gate := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 10), Pool: admission.Pool{Limit: shed.Fixed(1)}})
	job := admission.Ticket{Caller: caller.Caller{Key: "acme", Verified: true}, Cost: 8}
	permit, err := gate.Admit(context.Background(), job)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(permit.Charge(3), permit.Charge(1)) // it was less work than expected, once
	permit.Release(shed.Served)

	job.Cost = 7
	permit, err = gate.Admit(context.Background(), job)
	fmt.Println("the other seven:", err)
	permit.Release(shed.Served)
	// Output:
	// true false
	// the other seven: <nil>
}

func ExampleGate_Drain() {
	gate := admission.MustNew(admission.Options{})
	h := gate.Handler(hello)
	fmt.Println(ask(h, "/"))

	stop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println("drained:", gate.Drain(stop)) // then http.Server.Shutdown
	fmt.Println(ask(h, "/"))
	// Output:
	// 200
	// drained: <nil>
	// 503 draining
}

func ExampleDrainError() {
	gate := admission.MustNew(admission.Options{})
	permit, err := gate.Admit(context.Background(), admission.Ticket{})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, cancel := context.WithCancel(context.Background())
	cancel() // no patience at all
	var left *admission.DrainError
	if errors.As(gate.Drain(stop), &left) {
		fmt.Println(left.Running, "running,", left.Streams, "streams")
	}
	permit.Release(shed.Served)
	fmt.Println(gate.Drain(context.Background()))
	// Output:
	// 1 running, 0 streams
	// <nil>
}

func ExampleGate_Update() {
	opts := admission.Options{Rate: ratelimit.PerKey(0, 3), Pool: admission.Pool{Limit: shed.Fixed(64)}}
	gate := admission.MustNew(opts)
	h := gate.Handler(hello)
	fmt.Println(ask(h, "/"), ask(h, "/"))

	opts.Rate, opts.Pool.Limit = ratelimit.PerKey(0, 100), shed.Fixed(128)
	fmt.Println(gate.Update(opts))
	fmt.Println(ask(h, "/"), ask(h, "/")) // the balance stays: one of three

	opts.Pool.MaxWaiting = -1
	fmt.Println(gate.Update(opts))
	fmt.Println(gate.Stats().Pools[0].Limit) // a bad update changes nothing
	// Output:
	// 200 200
	// <nil>
	// 200 429 not-admissible
	// admission: Options.Pool: queue: MaxWaiting = -1: must not be negative
	// 128
}

func ExampleGate_Stats() {
	gate := admission.MustNew(admission.Options{Name: "api", Pool: admission.Pool{Limit: shed.Fixed(8)}, Rate: ratelimit.PerKey(0, 1)})
	h := gate.Handler(hello)
	ask(h, "/")
	ask(h, "/")
	s := gate.Stats()
	fmt.Println(s.Name, s.Pools[0].Limit, s.InFlight())
	fmt.Println(s.Count(shed.Admitted), s.Count(shed.RateLimited)+s.Count(shed.NotAdmissible))
	// Output:
	// api 8 0
	// 1 1
}

// printer is an observer that prints.
type printer string

func (p printer) Observe(e admission.Event) {
	fmt.Println(p, "hears of", e.Gate, e.Level, e.Reason.String())
}
func (p printer) Attach(name string, _ func() admission.Stats) {
	fmt.Println(p, "is attached to", name)
}

func ExampleObservers() {
	gate := admission.MustNew(admission.Options{
		Name:     "api",
		Observer: admission.Observers(printer("metrics"), nil, printer("log")),
	})
	ask(gate.Handler(hello), "/")
	// Output:
	// metrics is attached to api
	// log is attached to api
	// metrics hears of api normal admitted
	// log hears of api normal admitted
}

func ExampleGate_Alias() {
	gate := admission.MustNew(admission.Options{})
	key := caller.Caller{Key: "sk_live_51H", Verified: true}
	fmt.Println(len(gate.Alias(key)) > 0, gate.Alias(key) == "sk_live_51H")
	key.Alias = "Acme Corp."
	fmt.Println(gate.Alias(key))
	// Output:
	// true false
	// Acme Corp.
}
