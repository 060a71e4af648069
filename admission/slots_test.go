package admission_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func TestWideRequestsCountWithAllTheirSlots(t *testing.T) {
	plans := ratelimit.Tiers(ratelimit.Plan{Allow: ratelimit.AllowEverything}, map[string]ratelimit.Plan{"half": {Share: 0.5}})
	asked := admission.SlotsOf(func(r *http.Request) int {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		return n
	})
	for name, tc := range map[string]struct {
		opts   admission.Options
		route  []admission.RouteOption
		target string
		plan   string
		inside int // of four that come at once
		slots  int
		reason shed.Reason
	}{
		"one by default":           {target: "/", inside: 4, slots: 4},
		"of the route":             {route: []admission.RouteOption{admission.Slots(3)}, target: "/", inside: 3, slots: 9, reason: shed.Capacity},
		"of the request":           {route: []admission.RouteOption{asked}, target: "/?n=4", inside: 2, slots: 8, reason: shed.Capacity},
		"below one":                {route: []admission.RouteOption{asked}, target: "/?n=-7", inside: 4, slots: 4},
		"wider than the limit":     {route: []admission.RouteOption{asked}, target: "/?n=99", inside: 1, slots: 10, reason: shed.Capacity},
		"under the route's cap":    {route: []admission.RouteOption{admission.Slots(3), admission.Cap(7)}, target: "/", inside: 2, slots: 6, reason: shed.RouteCap},
		"wider than the cap":       {route: []admission.RouteOption{admission.Slots(3), admission.Cap(2)}, target: "/", inside: 1, slots: 3, reason: shed.RouteCap},
		"under the caller's cap":   {opts: admission.Options{CallerCap: 5}, route: []admission.RouteOption{admission.Slots(2)}, target: "/", inside: 2, slots: 4, reason: shed.CallerCap},
		"under the share of plans": {route: []admission.RouteOption{admission.Slots(2)}, target: "/", plan: "half", inside: 2, slots: 4, reason: shed.CallerCap},
		"in shadow":                {opts: admission.Options{Shadow: admission.ShadowCapacity, CallerCap: 5}, route: []admission.RouteOption{admission.Slots(3), admission.Cap(2)}, target: "/", inside: 4, slots: 12},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.opts.Identify, tc.opts.Rate = planned, plans
				tc.opts.Pool = admission.Pool{Limit: shed.Fixed(10), MaxWait: admission.NoWait}
				g := admission.MustNew(tc.opts)
				block := newHeld()
				h := g.At(priority.Normal, tc.route...)(block)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						w := do(h, request("GET", tc.target, "X-Key", "a/"+tc.plan))
						if w.Code != http.StatusOK && w.Header().Get("Headgate-Reason") != tc.reason.String() {
							t.Errorf("%d %s", w.Code, w.Header().Get("Headgate-Reason"))
						}
					})
					synctest.Wait()
				}
				if got, n := int(block.inside.Load()), g.Stats().Pools[0].InFlight; got != tc.inside || n != tc.slots {
					t.Errorf("%d inside with %d slots, want %d with %d", got, n, tc.inside, tc.slots)
				}
				close(block.release)
				wg.Wait()
				atRest(t, g)
				block.inside.Store(0)
				if do(h, request("GET", tc.target, "X-Key", "a/"+tc.plan)).Code != http.StatusOK {
					t.Error("refused at rest: something is still counted")
				}
			})
		})
	}
}

func TestWideWorkWithoutHTTP(t *testing.T) {
	g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(4), MaxWait: admission.NoWait}})
	p, err := g.Admit(context.Background(), admission.Ticket{Caller: caller.Caller{Key: "a"}, Slots: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Admit(context.Background(), admission.Ticket{Slots: 2}); !errors.Is(err, shed.Capacity) {
		t.Errorf("two more of four: %v", err)
	}
	p.Release(shed.Served)
	atRest(t, g)
}
