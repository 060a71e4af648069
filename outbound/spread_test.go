package outbound_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/ratelimit"
)

// took is how long the server takes for an answer.
const took = 200 * time.Millisecond

// returns lets n calls at once get the answer to a first attempt, and returns when
// each was sent again, from the first answer.
func returns(t *testing.T, n int, limit ratelimit.Limiter, refuse func() (int, []string)) []time.Duration {
	var mu sync.Mutex
	var again []time.Duration
	start, first := time.Now(), map[string]bool{}
	rt := outbound.MustNew(outbound.Options{
		Rate: limit, Budget: pacer.BudgetOptions{Floor: 100},
		Base: tripper(func(r *http.Request) (*http.Response, error) {
			time.Sleep(took) // so that all are on the way before the first is refused
			mu.Lock()
			defer mu.Unlock()
			if id := r.Header.Get("X-Call"); !first[id] {
				first[id] = true
				status, fields := refuse()
				return answer(r, status, fields...), nil
			}
			again = append(again, time.Since(start)-2*took)
			return answer(r, 200), nil
		}),
	})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			req := newRequest(t, "http://service.test/")
			req.Header.Set("X-Call", fmt.Sprint(i))
			resp, err := rt.RoundTrip(req)
			if err != nil || resp.StatusCode != 200 {
				t.Error(resp, err)
				return
			}
			resp.Body.Close()
		})
	}
	wg.Wait()
	return again
}

// Case OU-05: tried on the product
func TestCallsThatWereRefusedTogetherDoNotReturnTogether(t *testing.T) {
	date := func() []string {
		return []string{"Retry-After", time.Now().Add(3 * time.Second).UTC().Format(http.TimeFormat)}
	}
	for name, c := range map[string]struct {
		limit  ratelimit.Limiter
		refuse func() (int, []string)
	}{
		"429":              {ratelimit.PerKey(1000, 1000), func() (int, []string) { return 429, []string{"Retry-After", "2"} }},
		"429, small burst": {ratelimit.PerKey(1000, 10), func() (int, []string) { return 429, []string{"Retry-After", "2"} }},
		"no rate known":    {nil, func() (int, []string) { return 429, []string{"Retry-After", "2"} }},
		"503":              {ratelimit.PerKey(1000, 1000), func() (int, []string) { return 503, []string{"Retry-After", "2"} }},
		"a gate's 503":     {ratelimit.PerKey(1000, 1000), func() (int, []string) { return 503, []string{"Retry-After", "2", "Headgate-Reason", "capacity"} }},
		"milliseconds":     {ratelimit.PerKey(1000, 1000), func() (int, []string) { return 429, []string{"Retry-After-Ms", "2000"} }},
		"a date":           {ratelimit.PerKey(1000, 1000), func() (int, []string) { return 429, date() }},
	} {
		for run := range 5 { // the spread is drawn
			bubble(t, fmt.Sprint(name, " ", run), func(t *testing.T) {
				again := returns(t, 100, c.limit, c.refuse)
				first, last := again[0], again[len(again)-1]
				if len(again) != 100 || first < 2*time.Second || last-first < 500*time.Millisecond {
					t.Errorf("%d returned from %v to %v", len(again), first, last)
				}
			})
		}
	}
}

// Calls that had not left yet when the first was refused are held back with the others.
func TestCallsThatAPauseHeldBackDoNotLeaveTogether(t *testing.T) {
	for run := range 5 {
		for name, limit := range map[string]ratelimit.Limiter{"large burst": ratelimit.PerKey(1000, 1000), "small burst": ratelimit.PerKey(1000, 1)} {
			bubble(t, fmt.Sprint(name, " ", run), func(t *testing.T) {
				var mu sync.Mutex
				var sent []time.Duration
				start := time.Now()
				rt := outbound.MustNew(outbound.Options{Rate: limit, Base: tripper(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					defer mu.Unlock()
					sent = append(sent, time.Since(start))
					if len(sent) == 1 {
						return answer(r, 429, "Retry-After", "2"), nil
					}
					return answer(r, 200), nil
				})})
				var wg sync.WaitGroup
				wg.Go(func() { _, _, _ = get(t, t.Context(), rt) }) // is refused at once
				synctest.Wait()
				for range 99 {
					wg.Go(func() {
						if status, _, err := get(t, t.Context(), rt); err != nil || status != 200 {
							t.Error(status, err)
						}
					})
				}
				wg.Wait()
				first, last := sent[1], sent[len(sent)-1]
				if len(sent) != 101 || first < 2*time.Second || last-first < 500*time.Millisecond || last > 4*time.Second {
					t.Errorf("%d left, from %v to %v", len(sent), first, last)
				}
			})
		}
	}
}

// The spread must not cost a call the attempt that the hint itself leaves time for.
func TestTheSpreadLeavesTimeBeforeTheDeadline(t *testing.T) {
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []http.HandlerFunc{says(429, "Retry-After", "2"), says(200)}}
			rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)})
			if status, _, err := get(t, shortly(t, 2400*time.Millisecond), rt); err != nil || status != 200 {
				t.Errorf("status %d, error %v", status, err)
			}
		})
	}
}
