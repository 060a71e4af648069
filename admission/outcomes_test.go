package admission_test

import (
	"context"
	"math/rand/v2"
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

// mixedRoutes is a gate under a bit of everything: rates, caps, streams, exempt
// routes, panics, deadlines, clients that leave.
func mixedRoutes(heard admission.Observer) (*admission.Gate, []http.Handler) {
	g := admission.MustNew(admission.Options{
		Tenant: admission.Header("X-Tenant"), Rate: ratelimit.PerKey(40, 40), TenantCap: 6,
		Limit: shed.Throughput{Max: 8, Initial: 8}, Bound: 6, MaxWait: 30 * time.Millisecond, Reserve: 1,
		Deadline: admission.TimeoutHeader("X-Timeout", time.Second), Observer: heard,
	})
	work := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Duration(rand.IntN(40)) * time.Millisecond):
		case <-r.Context().Done():
			return
		}
		switch rand.IntN(10) {
		case 0:
			panic(http.ErrAbortHandler)
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			w.(http.Flusher).Flush()
		}
	})
	return g, []http.Handler{
		g.At(priority.Critical)(work),
		g.At(priority.High, admission.Cap(3))(work),
		g.At(priority.Normal, admission.Stream(3))(work),
		g.At(priority.Batch, admission.Cost(3))(work),
		g.At(priority.Batch, admission.Cost(41))(work),
		g.At(priority.Normal, admission.Exempt())(work),
	}
}

func TestEveryVisitEndsInExactlyOneReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &recorder{}
		g, routes := mixedRoutes(heard)
		const total = 5000
		var wg sync.WaitGroup
		for range total {
			wg.Go(func() { visitAtRandom(t, routes) })
			time.Sleep(time.Duration(rand.IntN(2)) * time.Millisecond)
		}
		wg.Wait()
		var sum, observed uint64
		var byReason [shed.ReasonCount]uint64
		for _, e := range heard.all() {
			byReason[e.Reason]++
			observed++
		}
		s := g.Stats()
		for r := range shed.ReasonCount {
			sum += s.Count(shed.Reason(r))
			if n := s.Count(shed.Reason(r)); n != byReason[r] {
				t.Errorf("%v: counted %d, observed %d", shed.Reason(r), n, byReason[r])
			}
		}
		if sum != total || observed != total {
			t.Errorf("counted %d, observed %d of %d", sum, observed, total)
		}
		t.Logf("by reason: %v", byReason)
		atRest(t, g)
	})
}

func visitAtRandom(t *testing.T, routes []http.Handler) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			t.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if rand.IntN(20) == 0 {
		time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, cancel)
	}
	r := request("GET", "/", "X-Tenant", string(rune('a'+rand.IntN(20))))
	if rand.IntN(3) == 0 {
		r.Header.Set("X-Timeout", "20")
	}
	routes[rand.IntN(len(routes))].ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
}

func TestInFlightNeverExceedsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Limit: shed.Fixed(7), Bound: 50, MaxWait: time.Second})
		var inside, most atomic.Int64
		h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			n := inside.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(time.Duration(1+rand.IntN(10)) * time.Millisecond)
			inside.Add(-1)
		}))
		var wg sync.WaitGroup
		for range 2000 {
			wg.Go(func() { get(h) })
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		if most.Load() != 7 {
			t.Errorf("most inside = %d, want exactly the limit", most.Load())
		}
		atRest(t, g)
	})
}
