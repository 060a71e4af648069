package redisrate

import (
	"math/rand/v2"
	"testing"
	"time"
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
			calls := float64(f.store.calls) / float64(len(f.admitted))
			over := excess(f.admitted, 1000, 100)
			wasted := 0
			for _, p := range f.procs {
				wasted += int(p.account.wasted)
			}
			t.Logf("offered %d admitted %d (%.2f %%), %.3f calls each, excess %.1f, blocked %.3f %% wasted %d",
				len(f.arrived), len(f.admitted), 100*used, calls, over, 100*float64(f.blocked)/float64(len(f.arrived)), wasted)
			if over > 0.01 || used < c.used || calls > c.calls {
				t.Errorf("want no excess, at least %.0f %%, at most %.1f calls", 100*c.used, c.calls)
			}
		})
	}
}
