package outbound_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// worst returns by how much the busiest window of at exceeds burst + rate·window,
// in calls: an oracle that looks at every window that starts and ends with a call.
func worst(at []time.Time, r rate.Limit, burst int) float64 {
	slices.SortFunc(at, time.Time.Compare)
	excess := 0.0
	for i := range at {
		for j := i; j < len(at); j++ {
			allowed := float64(burst) + float64(r)*at[j].Sub(at[i]).Seconds()
			excess = max(excess, float64(j-i+1)-allowed)
		}
	}
	return excess
}

func TestWorstFindsABurst(t *testing.T) {
	start := time.Unix(0, 0)
	steady := []time.Time{start, start.Add(time.Second), start.Add(2 * time.Second)}
	if got := worst(steady, 1, 1); got > 1e-9 {
		t.Errorf("steady calls exceed by %v", got)
	}
	if got := worst(append(steady, start.Add(time.Second)), 1, 1); got < 0.99 {
		t.Errorf("a double call exceeds by %v", got)
	}
}

func TestNoWindowExceedsBurstAndRate(t *testing.T) {
	for seed := range uint64(8) {
		bubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			const limit, burst = 50, 5
			p := newPacer(t, outbound.PacerOptions{Rate: ratelimit.PerKey(limit, burst), MaxWait: 3 * time.Second})
			var mu sync.Mutex
			var sent []time.Time
			var wg sync.WaitGroup
			for range 400 {
				patience := time.Duration(random.IntN(2000)) * time.Millisecond
				level := priority.FromIndex(random.IntN(priority.Count))
				gaveBack := random.IntN(10) == 0
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(priority.NewContext(t.Context(), level), patience)
					defer cancel()
					pass, err := p.Wait(ctx, push)
					switch {
					case err != nil:
					case gaveBack:
						pass.Undo(time.Now())
					default:
						mu.Lock()
						sent = append(sent, time.Now())
						mu.Unlock()
					}
				})
				time.Sleep(time.Duration(random.IntN(12)) * time.Millisecond)
				if random.IntN(60) == 0 {
					p.Heard(t.Context(), push, throttled(time.Duration(random.IntN(400))*time.Millisecond))
				}
			}
			wg.Wait()
			if excess := worst(sent, limit, burst); excess > 1e-6 {
				t.Errorf("a window exceeds its bound by %v of %d calls", excess, len(sent))
			}
			if s := p.Stats().Operations[0]; s.Waiting != 0 || len(sent) < 50 {
				t.Errorf("%d sent, %d still in line", len(sent), s.Waiting)
			}
		})
	}
}
