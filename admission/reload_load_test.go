package admission_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// TestUpdatesUnderLoadLoseAndMintNothing changes the numbers from several sides
// while requests run: no balance may be lost to the caller's gain, no limit passed.
func TestUpdatesUnderLoadLoseAndMintNothing(t *testing.T) {
	const most, burst = 8, 400
	block := newHeld()
	close(block.release)
	with := func(i int) admission.Options {
		return admission.Options{
			Rate: ratelimit.PerKey(0, burst+i%7), Pool: admission.Pool{Limit: shed.Fixed(1 + i%most), MaxWait: 10 * time.Millisecond}, CallerCap: (i % 3) * most,
			Pools:  map[string]admission.Pool{"db": {Limit: shed.Fixed(1 + i%most)}},
			Routes: map[string]admission.Rule{fmt.Sprintf("/%d", i%3): admission.AtLevel(priority.High, admission.Cap(1+i%4), admission.InPool("db"))},
		}
	}
	g := admission.MustNew(with(0))
	h := g.Handler(block)
	var all sync.WaitGroup
	for u := range 3 {
		all.Go(func() {
			for i := range 100 {
				if err := g.Update(with(3*i + u)); err != nil {
					t.Errorf("update %d: %v", i, err)
				}
				get(h) // the pace of the others
			}
		})
	}
	var ok atomic.Int64
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				if do(h, request("GET", fmt.Sprintf("/%d", i%4))).Code == http.StatusOK {
					ok.Add(1)
				}
			}
		})
	}
	all.Wait()
	// Raising the burst brings nothing by itself, lowering it may cost a few.
	if n := ok.Load(); n > burst+6 || n == 0 {
		t.Errorf("%d passed, at most %d tokens ever were", n, burst+6)
	}
	if n := block.most.Load(); n > 2*most {
		t.Errorf("%d inside at once, in two pools of at most %d", n, most)
	}
	atRest(t, g)
}
