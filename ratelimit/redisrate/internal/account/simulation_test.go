package account_test

import (
	"fmt"
	"math/rand/v2"
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

// A thousand processes share 100,000/s: they come and go, and the store is away
// for two seconds. The bound holds in every window, with the peers known.
func TestThousandProcesses(t *testing.T) {
	const n, r, burst = 1000, 100_000.0, 20_000
	f := newFleet(n, r, burst, time.Millisecond)
	rnd := rand.New(rand.NewPCG(7, 8))
	live := n
	for _, p := range f.procs {
		f.offer(p, rnd, 2*r/n, nil)
	}
	var churn func()
	churn = func() { // five leave and five join every 100 ms; heartbeats lag behind
		for range 5 {
			if p := f.procs[rnd.IntN(len(f.procs))]; !p.gone {
				p.gone = true
				live--
			}
			f.offer(f.join(), rnd, 2*r/n, nil)
			live++
		}
		f.after(100*time.Millisecond, churn)
	}
	f.after(0, churn)
	down, up := f.now+2*time.Second, f.now+4*time.Second
	f.store.Down = func() bool { return f.now >= down && f.now < up }
	f.run(1500 * time.Millisecond)
	calls, passed, begin := f.store.Calls, len(f.admitted), f.now
	f.run(500 * time.Millisecond)
	perSecond := float64(f.store.Calls-calls) / (f.now - begin).Seconds()
	each := float64(f.store.Calls-calls) / float64(len(f.admitted)-passed)
	f.run(5 * time.Second)
	within := func(from, to time.Duration) (n int) {
		for _, at := range f.admitted {
			if at >= begin+from && at < begin+to {
				n++
			}
		}
		return n
	}
	before, during, after := within(-time.Second, 500*time.Millisecond), within(500*time.Millisecond, 2500*time.Millisecond), within(4*time.Second, 5500*time.Millisecond)
	over := accounttest.Excess(f.admitted, r, burst)
	t.Logf("%d processes, %d requests: %.0f calls/s, %.3f for each admitted; of what one bucket refills, admitted %.1f %% before, %.1f %% in and %.1f %% after 2 s of outage; %.0f above the bound",
		live, len(f.arrived), perSecond, each, float64(before)/(1.5*r)*100, float64(during)/(2*r)*100, float64(after)/(1.5*r)*100, over)
	switch {
	case over > 0.01:
		t.Errorf("a window let %.1f more through than burst + rate·t", over)
	case float64(before) < 0.99*1.5*r || float64(after) < 0.93*1.5*r || float64(during) < 0.9*2*r:
		t.Error("too little is admitted")
	case each > 0.2:
		t.Error("too many calls")
	}
}

// A thousand replicas at three distances, with deploys and uneven traffic.
func TestThousandReplicasAtADistance(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		burst int
		calls float64
	}{{100_000, 50_000, 0.2}, {1000, 1000, 3}} {
		for _, trip := range []time.Duration{time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond} {
			t.Run(fmt.Sprintf("%v/%v", c.rate, trip), func(t *testing.T) {
				const n = 1000
				f := newFleet(n, c.rate, c.burst, trip)
				rnd := rand.New(rand.NewPCG(3, uint64(trip)))
				offer := func(p *proc) { f.offer(p, rnd, c.rate/n*(0.5+3*rnd.Float64()), nil) }
				for _, p := range f.procs {
					offer(p)
				}
				var deploy func()
				deploy = func() {
					for range 5 {
						f.procs[rnd.IntN(len(f.procs))].gone = true
						offer(f.join())
					}
					f.after(100*time.Millisecond, deploy)
				}
				f.after(0, deploy)
				f.run(1500 * time.Millisecond)
				passed, calls, begin := len(f.admitted), f.store.Calls, f.now
				f.run(1500 * time.Millisecond)
				used := float64(len(f.admitted)-passed) / (c.rate * (f.now - begin).Seconds())
				each := float64(f.store.Calls-calls) / float64(len(f.admitted)-passed)
				over := accounttest.Excess(f.admitted, c.rate, c.burst)
				t.Logf("used %.1f %%, %.3f calls each, %.2f over, %d local", 100*used, each, over, f.local)
				least := 0.97
				if c.rate > 1000 && trip == 100*time.Millisecond {
					least = 0.85 // leases of this many replicas are too small for this distance
				}
				if used < least || each > c.calls || over > 1 {
					t.Errorf("want %v used and no excess", least)
				}
			})
		}
	}
}
