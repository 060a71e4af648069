package account_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
)

// The bounds that are stated where processes do not see the same store: see the package
// comment of redisrate. All processes ask for four times their part.
func stated(n int, r float64, burst int) *fleet {
	f := newFleet(n, r, burst, time.Millisecond)
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, p := range f.procs {
		f.offer(p, rnd, 4*r/float64(n), nil)
	}
	return f
}

var limits = []struct {
	rate  float64
	burst int
}{{1000, 500}, {1000, 60}, {100, 60}} // leased, less so, a call each

// k of N processes cannot reach the store: R(1 + k/N)·t + B, and afterwards R·t + B again.
func TestSomeProcessesCutOff(t *testing.T) {
	const n = 10
	for _, c := range limits {
		for _, k := range []int{1, 5, 9} {
			t.Run(fmt.Sprintf("%v,%d/%d", c.rate, c.burst, k), func(t *testing.T) {
				f := stated(n, c.rate, c.burst)
				from, to := f.now+2*time.Second, f.now+5*time.Second
				f.cut = func(p *proc) bool {
					return f.now >= from && f.now < to && slices.Index(f.procs, p) < k
				}
				f.run(15 * time.Second)
				more := c.rate * (1 + float64(k)/n)
				over := accounttest.Excess(f.admitted, more, c.burst)
				later := slices.DeleteFunc(slices.Clone(f.admitted), func(at time.Duration) bool { return at < to+1500*time.Millisecond })
				again := accounttest.Excess(later, c.rate, c.burst)
				whole := accounttest.Excess(f.admitted, c.rate, c.burst)
				t.Logf("above R(1 + k/N)·t + B: %.1f; afterwards above R·t + B: %.1f; over all, above R·t + B: %.1f", over, again, whole)
				if over > 1 || again > 1 {
					t.Error("want none")
				}
				if whole < c.rate/5 {
					t.Error("the bound of one bucket was kept, or nearly: nothing was tried")
				}
			})
		}
	}
}

// A store that forgot lets one burst more through, and the slots that were out, at most.
func TestAStoreThatForgot(t *testing.T) {
	for _, c := range limits {
		t.Run(fmt.Sprintf("%v,%d", c.rate, c.burst), func(t *testing.T) {
			f := stated(10, c.rate, c.burst)
			f.run(3 * time.Second)
			clear(f.store.Buckets)
			f.run(3 * time.Second)
			over := accounttest.Excess(f.admitted, c.rate, c.burst)
			t.Logf("%.1f over", over)
			out := 0.0
			if c.rate >= 400 { // leased
				out = min(c.rate*0.051, 0.75*float64(c.burst))
			}
			if over > float64(c.burst)+out+1 || over < float64(c.burst)/2 {
				t.Errorf("%.1f above the bound, want at most a burst of %d and %.0f slots", over, c.burst, out)
			}
		})
	}
}

// Processes that have never met the store divide by MinPeers.
func TestProcessesThatNeverMetTheStore(t *testing.T) {
	for _, c := range limits {
		t.Run(fmt.Sprintf("%v,%d", c.rate, c.burst), func(t *testing.T) {
			const n = 10
			f := newFleet(n, c.rate, c.burst, time.Millisecond)
			f.peers, f.conf.MinPeers = 0, n
			f.procs = nil
			rnd := rand.New(rand.NewPCG(5, 6))
			for range n {
				f.offer(f.join(), rnd, 4*c.rate/n, nil)
			}
			f.store.Down = func() bool { return true }
			f.run(5 * time.Second)
			over := accounttest.Excess(f.admitted, c.rate, c.burst)
			used := float64(len(f.admitted)) / (5*c.rate + float64(c.burst))
			t.Logf("%.1f over, %.1f %% used", over, 100*used)
			if over > 1 || used < 0.95 {
				t.Error("want no excess and 95 % used")
			}
		})
	}
}
