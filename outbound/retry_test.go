package outbound_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
)

// Case OB-13: retry budgets that refused the only retry
func TestTheFloorOfTheBudgetAllowsALoneRetry(t *testing.T) {
	for _, c := range []struct {
		floor float64
		want  int
	}{{3, 200}, {pacer.NoBudget, 503}} {
		bubble(t, fmt.Sprint("floor ", c.floor), func(t *testing.T) {
			s := &script{steps: []http.HandlerFunc{says(503), says(200)}}
			rt := outbound.MustNew(outbound.Options{
				Base:   serve(t, s.ServeHTTP),
				Budget: pacer.BudgetOptions{Ratio: 0.2, Floor: c.floor},
			})
			if status, _, err := get(t, t.Context(), rt); err != nil || status != c.want {
				t.Errorf("status %d, error %v; want %d", status, err, c.want)
			}
		})
	}
}

// Case OB-15: retry budgets that were spent on 4xx
func TestAnswersThatAreTheCallersMistakeCostNoRetry(t *testing.T) {
	bubble(t, "answers that are the caller's mistake cost no retry", func(t *testing.T) {
		steps := make([]http.HandlerFunc, 0, 120)
		for range 50 {
			steps = append(steps, says(400), says(404))
		}
		for range 10 {
			steps = append(steps, says(503), says(200))
		}
		s := &script{steps: steps}
		rt := outbound.MustNew(outbound.Options{
			Base: serve(t, s.ServeHTTP), Rate: nil,
			// No floor: all that the ten retries can draw on is what the calls earned.
			Budget: pacer.BudgetOptions{Ratio: 0.2, Floor: pacer.NoBudget},
		})
		for range 100 {
			if status, _, err := get(t, t.Context(), rt); err != nil || status < 400 || status > 404 {
				t.Fatal(status, err)
			}
		}
		if s.attempts() != 100 {
			t.Fatalf("%d attempts for 100 mistakes", s.attempts())
		}
		for i := range 10 {
			if status, _, err := get(t, t.Context(), rt); err != nil || status != 200 {
				t.Errorf("call %d: status %d, error %v", i, status, err)
			}
		}
	})
}

// Case OB-19: clients whose attempts piled up headers
func TestTheCallersRequestStaysAsItWas(t *testing.T) {
	bubble(t, "the caller's request stays as it was", func(t *testing.T) {
		var mu sync.Mutex
		tries := map[string]int{}
		base := tripper(func(r *http.Request) (*http.Response, error) {
			r.Header.Add("X-Signature", "s") // what no transport should do, and many do
			r.URL.Host = "10.0.0.1"
			if n := len(r.Header["X-Signature"]); n != 1 {
				t.Errorf("%d signatures on one attempt", n)
			}
			mu.Lock()
			defer mu.Unlock()
			id := r.Header.Get("X-Call")
			tries[id]++
			if tries[id] < 3 {
				return answer(r, 502), nil
			}
			return answer(r, 200), nil
		})
		rt := outbound.MustNew(outbound.Options{Base: base, Budget: pacer.BudgetOptions{Floor: 100}})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				req, _ := http.NewRequest(http.MethodGet, "http://service.test/", nil)
				req.Header.Set("X-Call", fmt.Sprint(i))
				before := req.Header.Clone()
				ctx, url := req.Context(), req.URL.String()
				resp, err := rt.RoundTrip(req)
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("call %d: %v", i, err)
					return
				}
				resp.Body.Close()
				if fmt.Sprint(req.Header) != fmt.Sprint(before) || req.Context() != ctx || req.URL.String() != url {
					t.Errorf("request changed: %v", req.Header)
				}
			})
		}
		wg.Wait()
		for id, n := range tries {
			if n != 3 {
				t.Errorf("call %s: %d attempts", id, n)
			}
		}
	})
}

// Case OB-20: clients that waited after a 202
func TestRetryAfterOnASuccessIsNoThrottle(t *testing.T) {
	for _, status := range []int{200, 202, 301} {
		bubble(t, fmt.Sprint(status), func(t *testing.T) {
			s := &script{steps: []http.HandlerFunc{says(status, "Retry-After", "5")}}
			rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)})
			start := time.Now()
			got, _, err := get(t, t.Context(), rt)
			if err != nil || got != status || s.attempts() != 1 || time.Since(start) > 50*time.Millisecond {
				t.Errorf("status %d, error %v, %d attempts in %v", got, err, s.attempts(), time.Since(start))
			}
			if o := rt.Stats().Operations[0]; o.PauseLeft != 0 || o.Cuts != 0 || o.Multiplier != 1 {
				t.Errorf("throttle state: %+v", o)
			}
		})
	}
}

// Case OB-21: clients that retried in a loop on Retry-After: 0
func TestAttemptsStopAndKeepTheirDistanceUnderEndless429(t *testing.T) {
	for name, fields := range map[string][]string{"Retry-After 0": {"Retry-After", "0"}, "none": nil} {
		bubble(t, name, func(t *testing.T) {
			const floor = 30 * time.Millisecond
			s := &script{steps: []http.HandlerFunc{says(429, fields...)}}
			rt := outbound.MustNew(outbound.Options{
				Base:  serve(t, s.ServeHTTP),
				Retry: outbound.RetryOptions{Attempts: 4, MinBackoff: floor},
			})
			status, body, err := get(t, t.Context(), rt)
			if err != nil || status != 429 || body != http.StatusText(429) || s.attempts() != 4 {
				t.Errorf("status %d, body %q, error %v, %d attempts", status, body, err, s.attempts())
			}
			for _, gap := range s.gaps() {
				if gap < floor {
					t.Errorf("gap %v below the floor %v", gap, floor)
				}
			}
		})
	}
}
