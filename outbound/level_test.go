package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/internal/oracle"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Everything at once, against what must hold whatever happens: the window's bound,
// the cap, and nothing left behind.
func TestTransportUnderEverythingAtOnce(t *testing.T) {
	for seed := range uint64(6) {
		bubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			const limit, burst, slots = 40, 4, 3
			var mu sync.Mutex
			var sent []time.Time
			var now, most atomic.Int32
			base := tripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				sent = append(sent, time.Now())
				took, fate := time.Duration(random.IntN(200))*time.Millisecond, random.IntN(80)
				mu.Unlock()
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				return moody(r, took, fate)
			})
			rt := outbound.MustNew(outbound.Options{
				Base: base, Rate: ratelimit.PerKey(limit, burst), InFlight: shed.Fixed(slots),
				AttemptTimeout: 180 * time.Millisecond, MaxWait: 5 * time.Second,
			})
			var wg sync.WaitGroup
			var answered, refused atomic.Int32
			for range 300 {
				mu.Lock()
				patience := time.Duration(1+random.IntN(4000)) * time.Millisecond
				level := priority.All()[random.IntN(priority.Count)]
				pause := time.Duration(random.IntN(30)) * time.Millisecond
				mu.Unlock()
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(priority.NewContext(t.Context(), level), patience)
					defer cancel()
					status, _, err := get(t, ctx, rt)
					switch {
					case err == nil && status > 0:
						answered.Add(1)
					case errors.Is(err, verdict.ErrLocal), errors.Is(err, context.DeadlineExceeded),
						errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "attempt timed out"):
						refused.Add(1)
					default:
						t.Errorf("unexpected: %v", err)
					}
				})
				time.Sleep(pause)
			}
			wg.Wait()
			if excess := oracle.Worst(sent, limit, burst); excess > 1e-6 || most.Load() > slots {
				t.Errorf("a window exceeds its bound by %v of %d; %d at once", excess, len(sent), most.Load())
			}
			if answered.Load()+refused.Load() != 300 || answered.Load() == 0 {
				t.Errorf("%d answered, %d refused", answered.Load(), refused.Load())
			}
			t.Logf("%d answered, %d refused, %d sent", answered.Load(), refused.Load(), len(sent))
			o, s := operation(t, rt), rt.Stats().Services[0].Slots
			if o.Waiting != 0 || o.InFlight != 0 || s.InFlight != 0 || s.Waiting != [priority.Count]int{} || int(o.Attempts) != len(sent) {
				t.Errorf("left behind: %+v, slots %+v, %d sent", o, s, len(sent))
			}
		})
	}
}

// moody answers after a while, in one of the ways a service may.
func moody(r *http.Request, took time.Duration, fate int) (*http.Response, error) {
	select {
	case <-time.After(took):
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	switch fate {
	case 0:
		return nil, io.ErrUnexpectedEOF
	case 1:
		return answer(r, 429, "Retry-After", "1"), nil
	case 2:
		return answer(r, 503, "Headgate-Reason", "queue-full", "Retry-After", "1"), nil
	case 3:
		return answer(r, 500), nil
	}
	return answer(r, 200), nil
}
