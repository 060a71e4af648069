package admission_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
	"github.com/headgate-go/headgate/shed/pressure"
)

// closedAtTimes is a limiter whose store is away for every other request.
type closedAtTimes struct {
	ratelimit.Limiter
	asked *atomic.Int64
}

func (l closedAtTimes) Take(ctx context.Context, now time.Time, key ratelimit.Key, cost int, maxWait time.Duration) ratelimit.Decision {
	if l.asked.Add(1)%2 == 0 {
		return ratelimit.Decision{Never: true, Source: ratelimit.SourceClosed}
	}
	return l.Limiter.Take(ctx, now, key, cost, maxWait)
}

// known believes every header but one.
func known(r *http.Request) (caller.Caller, error) {
	if r.Header.Get("X-Tenant") == "a" {
		return caller.Caller{}, errors.New("the table of tenants is at db.internal")
	}
	return caller.Header("X-Tenant")(r)
}

// mixedRoutes is a gate under a bit of everything: rates, caps, streams, exempt
// routes, pools, pressure, a store that fails, panics, deadlines, clients that leave.
func mixedRoutes(heard admission.Observer) (*admission.Gate, []http.Handler) {
	var read atomic.Int64
	g := admission.MustNew(admission.Options{
		Identify: known, Rate: ratelimit.PerKey(40, 40), CallerCap: 2,
		Pool: admission.Pool{Limit: shed.Throughput{Max: 5, Initial: 5}, MaxWaiting: 6, MaxWaitingBytes: 8 << 10, MaxWait: 30 * time.Millisecond, CriticalReserve: 1},
		Pools: map[string]admission.Pool{
			"narrow": {Limit: shed.Fixed(1), MaxWait: admission.NoWait},
			"short":  {Limit: shed.Fixed(1), MaxWaiting: 1, MaxWait: 25 * time.Millisecond},
		},
		Deadline: admission.TimeoutHeader("X-Timeout", time.Second), Observer: heard,
		Pressure: pressure.Guard{Signals: []pressure.Signal{{
			Name: "heap", High: 0.9, Low: 0.5, Read: func() float64 { return float64(read.Add(1) % 8 / 7) },
		}}},
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
		g.At(priority.Normal, admission.InPool("narrow"))(work),
		g.At(priority.Normal, admission.InPool("short"))(work),
		g.At(priority.High, admission.InPool("short"))(work),
		g.At(priority.Normal, admission.Rate(closedAtTimes{ratelimit.PerKey(1000, 1000), new(atomic.Int64)}))(work),
	}
}

func TestEveryVisitEndsInExactlyOneReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := &recorder{}
		g, routes := mixedRoutes(heard)
		const total = 5000
		var wg sync.WaitGroup
		for i := range total {
			if i == total-100 {
				wg.Go(func() { _ = g.Drain(t.Context()) })
			}
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
			if n := s.Count(shed.Reason(r)); n != byReason[r] || n == 0 {
				t.Errorf("%v: counted %d, observed %d, want the same and some", shed.Reason(r), n, byReason[r])
			}
		}
		if sum != total || observed != total {
			t.Errorf("counted %d, observed %d of %d", sum, observed, total)
		}
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
	if rand.IntN(5) == 0 {
		time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, cancel)
	}
	r := request("GET", "/", "X-Tenant", string(rune('a'+rand.IntN(20))))
	if rand.IntN(3) == 0 {
		r.Header.Set("X-Timeout", "20")
	}
	r.ContentLength = rand.Int64N(1200)
	w := httptest.NewRecorder()
	routes[rand.IntN(len(routes))].ServeHTTP(w, r.WithContext(ctx))
	if strings.Contains(w.Body.String(), "internal") {
		t.Errorf("an error of the service's own reached the client: %s", w.Body)
	}
}

func TestInFlightNeverExceedsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(7), MaxWaiting: 50, MaxWait: time.Second}})
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
