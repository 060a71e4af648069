package shared

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// load is an open loop: arrivals do not wait for answers.
type load struct {
	name    string
	perSec  func(instance, n int, r float64) float64 // arrivals a second while on
	on, off time.Duration                            // off 0: always on
}

func loads() []load {
	even := func(_, n int, r float64) float64 { return 2 * r / float64(n) }
	skewed := func(i, n int, r float64) float64 {
		if i == 0 {
			return 2 * r * 0.6
		}
		return 2 * r * 0.4 / float64(n-1)
	}
	bursts := func(_, n int, r float64) float64 { return 5 * 2 * r / float64(n) }
	light := func(_, n int, r float64) float64 { return 0.7 * r / float64(n) }
	return []load{
		{name: "2x, even", perSec: even},
		{name: "2x, 60 % on one", perSec: skewed},
		{name: "2x, bursts in step", perSec: bursts, on: 100 * time.Millisecond, off: 400 * time.Millisecond},
		{name: "0.7x, even", perSec: light},
	}
}

// answer is what one request met.
type answer struct {
	arrived time.Duration
	took    time.Duration
	ok      bool
	err     bool
}

// patience is how long a request waits for a decision. What takes longer is an error.
const patience = 10 * time.Second

// offer sends one instance its part of the load until stop.
func (l load) offer(in instance, i, n int, r float64, begin time.Time, length time.Duration) []answer {
	rnd := rand.New(rand.NewPCG(uint64(i), 7))
	var mu sync.Mutex
	var wg sync.WaitGroup
	var all []answer
	perSec := l.perSec(i, n, r)
	for at := time.Duration(0); ; {
		at = l.next(at, time.Duration(rnd.ExpFloat64()/perSec*float64(time.Second)))
		if at >= length {
			break
		}
		time.Sleep(time.Until(begin.Add(at)))
		wg.Go(func() {
			from := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			ok, err := in.allow(ctx)
			a := answer{from.Sub(begin), time.Since(from), ok, err != nil}
			mu.Lock()
			all = append(all, a)
			mu.Unlock()
		})
	}
	wg.Wait()
	return all
}

// next adds gap to at, in the time the load is on.
func (l load) next(at, gap time.Duration) time.Duration {
	if l.off == 0 {
		return at + gap
	}
	period := l.on + l.off
	busy := at/period*l.on + min(at%period, l.on) + gap
	return busy/l.on*period + busy%l.on
}
