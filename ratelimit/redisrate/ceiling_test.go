package redisrate

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
)

// answer is what one request met, in time since the begin of a load.
type answer struct {
	arrived time.Duration
	took    time.Duration
	due     time.Duration // when it went, if it did
	ratelimit.Decision
}

// stalls measures how much time the machine takes from those who want to run.
type stalls struct{ worst, total time.Duration }

func (s *stalls) watch(length time.Duration) {
	for end := time.Now().Add(length); time.Now().Before(end); {
		from := time.Now()
		time.Sleep(time.Millisecond)
		if late := time.Since(from) - 4*time.Millisecond; late > 0 {
			s.worst, s.total = max(s.worst, late), s.total+late
		}
	}
}

// crowd is several processes' limiters in this one, each with its own connections.
type crowd []*Limiter

func newCrowd(t *testing.T, n int, client func() redis.UniversalClient, r float64, burst int, o ...option) crowd {
	var c crowd
	for range n {
		c = append(c, perKey(t, client(), r, burst, o...))
	}
	return c
}

// meet waits until all know of each other.
func (c crowd) meet(t *testing.T, key string) {
	t.Helper()
	for _, l := range c {
		take(l, key, 1, 0)
	}
	for _, l := range c {
		redistest.Eventually(t, 10*time.Second, "peers are known", func() bool { return l.link.peers.Count() == len(c) })
	}
}

// load offers perSec(i) requests a second to the i-th process, open loop, for
// length; on says when.
func (c crowd) load(length time.Duration, perSec func(i int) float64, on func(time.Duration) bool) (all []answer, stalled stalls) {
	var mu sync.Mutex
	var wg, requests sync.WaitGroup
	wg.Go(func() { stalled.watch(length) })
	begin := time.Now()
	for i, l := range c {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		wg.Go(func() {
			for at := time.Duration(0); at < length; {
				at += time.Duration(rnd.ExpFloat64() / perSec(i) * float64(time.Second))
				time.Sleep(time.Until(begin.Add(at)))
				if on != nil && !on(time.Since(begin)) {
					continue
				}
				requests.Go(func() {
					now := time.Now()
					d := l.Take(context.Background(), now, ratelimit.Key{ID: "all"}, 1, 0)
					a := answer{arrived: now.Sub(begin), took: time.Since(now), Decision: d}
					a.due = d.Grant.At.Add(d.Wait).Sub(begin)
					mu.Lock()
					all = append(all, a)
					mu.Unlock()
				})
			}
		})
	}
	wg.Wait()
	requests.Wait()
	slices.SortFunc(all, func(a, b answer) int { return cmp.Compare(a.arrived, b.arrived) })
	return all, stalled
}

func admittedOf(all []answer) (due []time.Duration) {
	for _, a := range all {
		if a.OK {
			due = append(due, a.due)
		}
	}
	return due
}

// idealOf is what one bucket in memory admits of the same arrivals, from skip on.
func idealOf(all []answer, r float64, burst int, skip time.Duration) (ideal, real int) {
	b, zero := rate.NewLimiter(rate.Limit(r), burst), time.Unix(0, 0)
	for _, a := range all {
		would := b.AllowN(zero.Add(a.arrived), 1)
		if a.arrived < skip {
			continue
		}
		if would {
			ideal++
		}
		if a.OK {
			real++
		}
	}
	return ideal, real
}

func TestEightProcessesHoldTheCeiling(t *testing.T) {
	s := redistest.Start(t)
	period := 500 * time.Millisecond
	for _, c := range []struct {
		name  string
		calls float64
		each  func(i int) float64
		on    func(time.Duration) bool
	}{
		{"even", 0.2, func(int) float64 { return 250 }, nil},
		{"skewed", 0.2, func(i int) float64 {
			if i == 0 {
				return 1200
			}
			return 800.0 / 7
		}, nil},
		{"in step", 0.3, func(int) float64 { return 1250 }, func(t time.Duration) bool { return t%period < period/5 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			fleet := newCrowd(t, 8, func() redis.UniversalClient { return s.Client(t) }, 1000, 100,
				name(c.name))
			fleet.meet(t, "other")
			time.Sleep(10 * time.Millisecond)
			before := 0
			for _, l := range fleet {
				before += calls(l)
			}
			all, stalled := fleet.load(4*time.Second, c.each, c.on)
			after := 0
			for _, l := range fleet {
				after += calls(l)
			}
			over := accounttest.Excess(admittedOf(all), 1000, 100)
			ideal, real := idealOf(all, 1000, 100, 500*time.Millisecond)
			each := float64(after-before) / float64(len(admittedOf(all)))
			var took []time.Duration
			for _, a := range all {
				took = append(took, a.took)
			}
			slices.Sort(took)
			t.Logf("offered %d, admitted %d, ideal %d from 0.5 s on, excess %.2f tokens, %.3f calls each, added p50 %v p99 %v, stalled %v",
				len(all), real, ideal, over, each, took[len(took)/2], took[len(took)*99/100], stalled)
			if over > 0.01 {
				t.Errorf("some window let %.2f more through than burst + rate·t", over)
			}
			// What a bucket refills while nobody here runs is lost to slots that perish.
			if float64(real) < 0.985*float64(ideal)-3*1000*stalled.total.Seconds() {
				t.Errorf("%d admitted, one bucket would have admitted %d", real, ideal)
			}
			if each > c.calls {
				t.Errorf("%.3f calls each", each)
			}
		})
	}
}

func TestDenialsDoNotFloodTheStore(t *testing.T) {
	s := redistest.Start(t)
	fleet := newCrowd(t, 4, func() redis.UniversalClient { return s.Client(t) }, 1000, 100)
	fleet.meet(t, "other")
	before := 0
	for _, l := range fleet {
		before += calls(l)
	}
	begin := time.Now()
	var wg sync.WaitGroup
	for _, l := range fleet {
		wg.Go(func() {
			for time.Since(begin) < time.Second {
				take(l, "all", 1, 0)
			}
		})
	}
	wg.Wait()
	took := time.Since(begin).Seconds()
	after := 0
	for _, l := range fleet {
		after += calls(l)
	}
	if perSec := float64(after-before) / took; perSec > 3*4/0.05 {
		t.Errorf("%.0f calls a second under a flood, want at most 3N/τ = 240", perSec)
	}
}
