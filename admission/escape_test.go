package admission_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// A visit that is over admits nothing: what a handler sends on after its answer passes
// the gate like any other request.
//
// Case GA-04: tried on the product
func TestAVisitThatIsOverAdmitsNothing(t *testing.T) {
	for name, later := range map[string]func(context.Context) context.Context{
		"without cancel": context.WithoutCancel,
		"as it was":      func(ctx context.Context) context.Context { return ctx },
		"with a value": func(ctx context.Context) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), http.LocalAddrContextKey, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := capped(1)
				var inside, most atomic.Int64
				work := g.At(priority.Normal)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					if n := inside.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(time.Second)
					inside.Add(-1)
				}))
				var kept context.Context
				do(g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					kept = later(r.Context())
					w.WriteHeader(http.StatusAccepted)
				})), request("POST", "/"))
				var wg sync.WaitGroup
				var refused atomic.Int64
				for range 5 {
					wg.Go(func() {
						if do(work, request("POST", "/").WithContext(kept)).Code == http.StatusServiceUnavailable {
							refused.Add(1)
						}
					})
				}
				wg.Wait()
				if most.Load() != 1 || refused.Load() != 4 {
					t.Errorf("%d at once and %d refused, want 1 and 4", most.Load(), refused.Load())
				}
				if n := g.Stats().Count(shed.Admitted); n != 2 {
					t.Errorf("%d admitted, want 2", n)
				}
				atRest(t, g)
			})
		})
	}
}

// What an admitted request sends inward while it runs is part of it.
func TestAVisitThatRunsAdmitsWhatItSendsInward(t *testing.T) {
	g := capped(1)
	inner := g.At(priority.Normal)(okHandler())
	w := get(g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, request("GET", "/").WithContext(context.WithoutCancel(r.Context())))
	})))
	if w.Code != http.StatusOK || g.Stats().Count(shed.Admitted) != 1 {
		t.Errorf("%d, %d admitted", w.Code, g.Stats().Count(shed.Admitted))
	}
}

// Charge and FromContext speak of the request that runs, not of the one before it.
func TestASecondVisitOnAKeptContextIsItsOwn(t *testing.T) {
	g := admission.MustNew(admission.Options{})
	var kept context.Context
	get(g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { kept = context.WithoutCancel(r.Context()) })))
	if admission.Charge(kept, 2) {
		t.Error("a request that is over was charged")
	}
	do(g.At(priority.Batch)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if v, ok := admission.FromContext(r.Context()); !ok || v.Level != priority.Batch {
			t.Errorf("visitor = %+v, %v", v, ok)
		}
		if !admission.Charge(r.Context(), 2) {
			t.Error("the request was not charged")
		}
	})), request("GET", "/").WithContext(kept))
}

// A stream that has given its slot back admits nothing with it: what it sends inward,
// such as the messages of a WebSocket, passes the gate by itself.
func TestWhatAStreamSendsInwardPassesTheGate(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 3), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}})
	inner, served := g.At(priority.Normal)(okHandler()), 0
	get(g.At(priority.Normal, admission.Stream(1))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(httptest.NewRecorder(), request("GET", "/").WithContext(r.Context())) // in its slot
		w.(http.Flusher).Flush()
		for range 5 {
			if do(inner, request("GET", "/").WithContext(r.Context())).Code == http.StatusOK {
				served++
			}
		}
	})))
	if served != 2 { // of three tokens the stream has taken one
		t.Errorf("%d served, want 2", served)
	}
	atRest(t, g)
}
