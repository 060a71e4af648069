package pacer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/outbound/internal/oracle"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

func TestNoWindowExceedsBurstAndRate(t *testing.T) {
	for seed := range uint64(8) {
		bubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			const limit, burst = 50, 5
			p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(limit, burst), MaxWait: 3 * time.Second})
			var mu sync.Mutex
			var sent []time.Time
			var wg sync.WaitGroup
			for range 400 {
				patience := time.Duration(random.IntN(2000)) * time.Millisecond
				level := priority.All()[random.IntN(priority.Count)]
				gaveBack := random.IntN(10) == 0
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(priority.NewContext(t.Context(), level), patience)
					defer cancel()
					grant, err := p.Acquire(ctx, push)
					switch {
					case err != nil:
					case gaveBack:
						grant.Undo()
					default:
						mu.Lock()
						sent = append(sent, time.Now())
						mu.Unlock()
					}
				})
				time.Sleep(time.Duration(random.IntN(12)) * time.Millisecond)
				if random.IntN(60) == 0 {
					p.Report(t.Context(), push, throttled(time.Duration(random.IntN(400))*time.Millisecond))
				}
			}
			wg.Wait()
			if excess := oracle.Worst(sent, limit, burst); excess > 1e-6 {
				t.Errorf("a window exceeds its bound by %v of %d calls", excess, len(sent))
			}
			if s := p.Stats().Operations[0]; s.Waiting != 0 || len(sent) < 30 {
				t.Errorf("%d sent, %d still in line", len(sent), s.Waiting)
			}
		})
	}
}
