package admission_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Wherever the gate is mounted, visits are counted under the pattern that code gave the
// route, and never under what a client sent.
func TestVisitsAreCountedByPattern(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for name, tc := range map[string]struct {
		want  string
		mount func(*admission.Gate) http.Handler
	}{
		"At behind net/http's mux": {"GET /items/{id}", func(g *admission.Gate) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("GET /items/{id}", g.At(priority.High)(ok))
			return mux
		}},
		"At behind chi": {"/items/{id}", func(g *admission.Gate) http.Handler {
			r := chi.NewRouter()
			r.With(g.At(priority.High)).Get("/items/{id}", ok)
			return r
		}},
		"Handler before net/http's mux": {"GET /items/{id}", func(g *admission.Gate) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("GET /items/{id}", ok)
			return g.Handler(mux)
		}},
		"a rule of the edge": {"/items/", func(g *admission.Gate) http.Handler { return g.Handler(ok) }},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []admission.Event
			opts := admission.Options{Observer: watcher(func(e admission.Event) { seen = append(seen, e) })}
			if tc.want == "/items/" {
				opts.Routes = map[string]admission.Rule{"/items/": admission.AtLevel(priority.High)}
			}
			g := admission.MustNew(opts)
			h := tc.mount(g)
			for i := range 300 {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", fmt.Sprint("/items/", i), nil))
			}
			routes := g.Stats().Routes
			if len(routes) != 1 || routes[0].Pattern != tc.want || routes[0].Outcomes[shed.Served] != 300 {
				t.Fatalf("routes %+v, want 300 served of %s", routes, tc.want)
			}
			if len(seen) != 300 || seen[299].Route != tc.want {
				t.Errorf("%d events, the last of %q", len(seen), seen[299].Route)
			}
		})
	}
}

type watcher func(admission.Event)

func (w watcher) Observe(e admission.Event)           { w(e) }
func (watcher) Attach(string, func() admission.Stats) {}

// A refusal behind the router is counted under its route, an exempt visit too.
func TestRefusalsAndExemptionsAreCountedByPattern(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0.001, 1)})
	mux := http.NewServeMux()
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/work", g.At(priority.Normal)(ok))
	mux.Handle("/health", g.At(priority.Normal, admission.Exempt())(ok))
	for _, path := range []string{"/work", "/work", "/work", "/health"} {
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	n := priority.Normal.Index()
	routes := g.Stats().Routes
	if len(routes) != 2 || routes[0].Visits[n][shed.Exempt] != 1 || routes[1].Visits[n][shed.RateLimited] != 2 || routes[1].Visits[n][shed.Admitted] != 1 {
		t.Errorf("%+v", routes)
	}
}

// One caller holds the slots, another is turned away for it: both are named, by alias.
func TestStatsNameThoseWhoHoldSlotsAndThoseTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}})
		greedy := admission.Ticket{Caller: caller.Caller{Key: "secret-1", Alias: "Greedy", Verified: true}}
		small := admission.Ticket{Caller: caller.Caller{Key: "secret-2", Alias: "Small", Verified: true}}
		for range 5 {
			p, err := g.Admit(context.Background(), greedy)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Admit(context.Background(), small); err == nil {
				t.Fatal("admitted beside the only slot")
			}
			time.Sleep(time.Second)
			p.Release(shed.Served)
		}
		s := g.Stats()
		for what, got := range map[string]struct {
			list []admission.CallerCount
			want admission.CallerCount
		}{
			"refused": {s.Refused, admission.CallerCount{Alias: "Small", Count: 5}},
			"served":  {s.Served, admission.CallerCount{Alias: "Greedy", Count: 5}},
			"busiest": {s.Busiest, admission.CallerCount{Alias: "Greedy", Count: 5_000_000}},
		} {
			if len(got.list) != 1 || got.list[0] != got.want {
				t.Errorf("%s: %+v, want %+v", what, got.list, got.want)
			}
		}
		if len(s.Limited) != 0 {
			t.Errorf("limited: %+v", s.Limited)
		}
	})
}
