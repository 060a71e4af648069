package account_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
)

// A burst too small to lend out of must not be exceeded, nor cost throughput.
func TestAnyBurstIsHeld(t *testing.T) {
	for _, c := range []struct {
		burst             int
		used, calls, over float64
	}{
		{1, 0.94, 4, 1.01}, {5, 0.99, 2.1, 0.01}, {10, 0.99, 2.1, 0.01}, {25, 0.99, 0.5, 0.01},
		{50, 0.99, 0.3, 0.01}, {100, 0.99, 0.2, 0.01}, {1000, 0.99, 0.2, 0.01},
	} {
		f := newFleet(8, 1000, c.burst, 200*time.Microsecond)
		rnd := rand.New(rand.NewPCG(1, 2))
		for _, p := range f.procs {
			f.offer(p, rnd, 250, nil)
		}
		f.run(5 * time.Second)
		used := float64(len(f.admitted)) / float64(f.ideal())
		calls := float64(f.store.Calls) / float64(len(f.admitted))
		if over := accounttest.Excess(f.admitted, 1000, c.burst); over > c.over+0.01 || used < c.used || calls > c.calls {
			t.Errorf("%d local, burst %d: %.2f over, %.2f %% of one bucket, %.3f calls each", f.local, c.burst, over, 100*used, calls)
		}
	}
}
