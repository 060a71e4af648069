package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/dashboard"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

const hostile = `<img src=x onerror="alert(1)"></script>'"` + "\u2028"

// Data is declared as data, and nothing in it can be taken for markup. (What the
// page makes of it is seen in a browser, in e2e.)
//
// Case DB-01: field report
func TestDataIsDeclaredAsData(t *testing.T) {
	gate := admission.MustNew(admission.Options{
		Name: hostile, Rate: ratelimit.PerKey(1, 1), Pool: admission.Pool{Limit: shed.Fixed(1)},
		Pools: map[string]admission.Pool{hostile: {Limit: shed.Fixed(1)}},
	})
	caller := caller.Caller{Key: "k", Alias: hostile, Verified: true}
	for range 2 {
		if p, err := gate.Admit(t.Context(), admission.Ticket{Caller: caller}); err == nil {
			p.Release(shed.Served)
		}
	}
	h := dashboard.Handler(dashboard.Title(hostile), dashboard.Gate(gate))
	w := get(h, "/x/data.json")
	if ct := w.Header().Get("Content-Type"); ct != "application/json; charset=utf-8" {
		t.Errorf("data.json is %q", ct)
	}
	if strings.ContainsAny(w.Body.String(), "<>\u2028") {
		t.Errorf("markup in %s", w.Body)
	}
	d := frame(t, h)
	if g := d.Gates[0]; d.Title != hostile || g.Name != hostile || g.Pools[1].Name != hostile || g.Limited[0].Alias != hostile {
		t.Errorf("names did not come through: %+v", d)
	}
	for _, name := range []string{"/headgate/", "/headgate/app.js", "/headgate/data.json"} {
		h := get(h, name).Header()
		if csp := h.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", name, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", name)
		}
	}
}

// Readers that vanish or stall are dropped, and slow nobody.
//
// Case DB-03: field report
func TestReadersThatVanishOrStallAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1)}})
		dial := served(t, dashboard.Handler(dashboard.Gate(gate)))
		for range 50 {
			conn := dial()
			follow(t, conn)
			defer conn.Close()
			go func() { _ = conn.Close() }()
		}
		stalled := dial()
		defer stalled.Close()
		follow(t, stalled) // and not a byte more

		live := dial()
		r := follow(t, live)
		if n := connections(); n < 2 {
			t.Fatalf("%d connections are served: they are not counted right", n)
		}
		for range 3 {
			began := time.Now()
			nextFrame(t, r)
			if took := time.Since(began); took > 1100*time.Millisecond {
				t.Errorf("a frame took %v beside a stalled reader", took)
			}
		}
		_ = live.Close()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if n := connections(); n > 0 {
			t.Errorf("%d connections are still served", n)
		}
	})
}

// connections counts the goroutines that serve one. (The number of all goroutines
// has some of the runtime's in it, now and then.)
func connections() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "net/http.(*conn).serve(")
}

// The page answers when nothing else does.
//
// Case DB-05: field report
func TestThePageAnswersWhileTheGateIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		gate := admission.MustNew(admission.Options{
			Rate: ratelimit.PerKey(0.001, 1), Pool: admission.Pool{Limit: shed.Fixed(1), MaxWaiting: 1, MaxWait: time.Hour},
			Observer: metrics.New(reg),
		})
		mux := http.NewServeMux()
		mux.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
		mux.Handle("/headgate/", dashboard.Handler(dashboard.Gate(gate)))
		release := make(chan struct{})
		mux.Handle("/", gate.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })))
		for i := range 2 { // one runs, one waits
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = []string{"198.51.100.1:1", "198.51.100.2:1"}[i]
			go mux.ServeHTTP(httptest.NewRecorder(), r)
			synctest.Wait()
		}
		defer close(release)
		if w := get(mux, "/"); w.Code != http.StatusServiceUnavailable {
			t.Fatalf("the house is not full: %d", w.Code)
		}
		if w := get(mux, "/"); w.Code != http.StatusTooManyRequests {
			t.Fatalf("the operator is not over its rate: %d", w.Code)
		}
		for _, target := range []string{"/headgate/", "/headgate/app.js", "/headgate/data.json", "/metrics"} {
			began := time.Now()
			if w := get(mux, target); w.Code != http.StatusOK || time.Since(began) >= 200*time.Millisecond {
				t.Errorf("%s: %d after %v", target, w.Code, time.Since(began))
			}
		}
		d := frame(t, mux)
		if p := d.Gates[0].Pools[0]; p.InFlight != 1 || p.Waiting[priority.Normal.Index()] != 1 {
			t.Errorf("the page took a slot or a place: %+v", p)
		}
	})
}
