package account_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
)

func TestFleetHoldsTheCeiling(t *testing.T) {
	period := 500 * time.Millisecond
	inStep := func(t time.Duration) bool { return t%period < 100*time.Millisecond }
	for _, c := range []struct {
		name  string
		used  float64
		calls float64
		on    func(time.Duration) bool
		each  func(i int) float64
	}{
		{"even", 0.99, 0.2, nil, func(int) float64 { return 250 }},
		{"skewed", 0.99, 0.2, nil, func(i int) float64 {
			if i == 0 {
				return 1200
			}
			return 800.0 / 7
		}},
		{"in step, 1.2x", 0.98, 0.3, inStep, func(int) float64 { return 750 }},
		{"in step", 0.99, 0.3, inStep, func(int) float64 { return 1250 }},
		{"light", 0.99, 0.3, nil, func(int) float64 { return 90 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(8, 1000, 100, 200*time.Microsecond)
			rnd := rand.New(rand.NewPCG(1, 2))
			for i, p := range f.procs {
				f.offer(p, rnd, c.each(i), c.on)
			}
			f.run(30 * time.Second)
			used := float64(len(f.admitted)) / float64(f.ideal())
			calls := float64(f.store.Calls) / float64(len(f.admitted))
			over := accounttest.Excess(f.admitted, 1000, 100)
			wasted := 0
			for _, p := range f.procs {
				_, lost := p.account.Counts()
				wasted += int(lost)
			}
			t.Logf("offered %d admitted %d (%.2f %%), %.3f calls each, excess %.1f, blocked %.3f %% wasted %d",
				len(f.arrived), len(f.admitted), 100*used, calls, over, 100*float64(f.blocked)/float64(len(f.arrived)), wasted)
			if over > 0.01 || used < c.used || calls > c.calls {
				t.Errorf("want no excess, at least %.0f %%, at most %.1f calls", 100*c.used, c.calls)
			}
		})
	}
}

// crowd is a thousand processes with wrong clocks and uneven traffic, a part of which
// leaves and is replaced all the time.
func crowd(r float64, burst int, trip time.Duration, even bool) (f *fleet, joined func() int) {
	const n = 1000
	f = newFleet(n, r, burst, trip)
	rnd := rand.New(rand.NewPCG(3, uint64(trip)))
	f.skew(rnd)
	offer := func(p *proc) {
		times := 2.0 // of its part of the limit
		if !even {
			times = 0.5 + 3*rnd.Float64()
		}
		f.offer(p, rnd, r/n*times, nil)
	}
	for _, p := range f.procs {
		offer(p)
	}
	live, met := slices.Clone(f.procs), 0
	var deploy func()
	deploy = func() { // fifty a second
		for range 5 {
			i := rnd.IntN(n)
			live[i].gone = true
			live[i] = f.join()
			offer(live[i])
			met++
		}
		f.after(100*time.Millisecond, deploy)
	}
	f.after(0, deploy)
	return f, func() int { return met }
}

var farAway = []time.Duration{time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond}

// A thousand replicas at three distances, with deploys, uneven traffic and wrong clocks.
func TestThousandReplicasAtADistance(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		burst int
		calls float64
	}{{100_000, 50_000, 0.2}, {1000, 1000, 3}} {
		for _, trip := range farAway {
			t.Run(fmt.Sprintf("%v/%v", c.rate, trip), func(t *testing.T) {
				f, _ := crowd(c.rate, c.burst, trip, false)
				f.run(1500 * time.Millisecond)
				passed, calls, begin := len(f.admitted), f.store.Calls, f.now
				f.run(3 * time.Second)
				used := float64(len(f.admitted)-passed) / (c.rate * (f.now - begin).Seconds())
				each := float64(f.store.Calls-calls) / float64(len(f.admitted)-passed)
				over := accounttest.Excess(f.admitted, c.rate, c.burst)
				t.Logf("used %.1f %%, %.3f calls each, %.2f over, %d local", 100*used, each, over, f.local)
				if used < 0.97 || each > c.calls || over > 1 {
					t.Errorf("want 97 %% used, no excess, and %v calls each at most", c.calls)
				}
			})
		}
	}
}

// The same, and the store is away for two seconds. Only processes that start meanwhile,
// which do not know that others have drawn, may add to the bound: a part of the burst each.
// What a process does not need of its share is lost, as long as shares decide: of the uneven
// traffic a sixth of the processes need 0.75 of theirs, which leaves 1 - 0.25/6. And once,
// on the return, the slots are stocked again that a far store needs ahead: an interval and a
// round trip of the rate.
func TestThousandReplicasThroughAnOutage(t *testing.T) {
	for i := range 2 * len(farAway) {
		trip, even := farAway[i/2], i%2 == 0
		t.Run(fmt.Sprintf("%v/even %v", trip, even), func(t *testing.T) {
			const r, burst = 100_000.0, 50_000
			f, joined := crowd(r, burst, trip, even)
			least := 0.97
			if !even {
				least *= 1 - 0.25/6
			}
			begin := f.now
			down, up := begin+2*time.Second, begin+4*time.Second
			f.store.Down = func() bool { return f.now >= down && f.now < up }
			f.run(2 * time.Second)
			before := joined()
			f.run(2 * time.Second)
			unknown := joined() - before
			f.run(3 * time.Second)
			within := func(from, to time.Duration) float64 {
				n := 0
				for _, at := range f.admitted {
					if at >= from && at < to {
						n++
					}
				}
				return float64(n) / (r * (to - from).Seconds())
			}
			during, after := within(down, up), within(up, f.now)
			stock := (50*time.Millisecond + trip).Seconds() / (f.now - up).Seconds()
			over, stated := accounttest.Excess(f.admitted, r, burst), float64(unknown*burst/1000)
			t.Logf("used %.1f %% in the outage and %.1f %% in the three seconds after it; %.0f over, at most %.0f for %d newcomers",
				100*during, 100*after, over, stated, unknown)
			if during < least || after < least-stock || over > stated+1 {
				t.Errorf("want %.1f %% and %.1f %% used, and no more above the bound than stated", 100*least, 100*(least-stock))
			}
		})
	}
}
