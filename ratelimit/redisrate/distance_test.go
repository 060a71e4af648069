package redisrate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
)

// far is several processes that share a store at a distance, in a bubble.
type far struct {
	t     *testing.T
	store *sick
	procs []*Limiter

	mu       sync.Mutex
	wg       sync.WaitGroup
	arrived  []time.Duration
	admitted []time.Duration
	local    int
	longest  time.Duration
}

// atDistance runs f with n processes whose calls take trip, each way half of it and
// up to jitter more.
func atDistance(t *testing.T, n int, r float64, burst int, trip, jitter time.Duration, options []option, f func(t *testing.T, w *far)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &far{t: t, store: newSick()}
		rnd := rand.New(rand.NewPCG(uint64(trip), uint64(jitter)))
		w.store.peers = n
		w.store.delay = func() (there, back time.Duration) {
			more := func() time.Duration { return time.Duration(rnd.Int64N(int64(jitter) + 1)) }
			return trip/2 + more(), trip/2 + more()
		}
		for range n {
			w.procs = append(w.procs, w.join(r, burst, options))
		}
		defer func() {
			for _, l := range w.procs {
				l.Close()
			}
		}()
		f(t, w)
	})
}

func (w *far) join(r float64, burst int, options []option) *Limiter {
	c := with(append([]option{quiet}, options...)...).config()
	c.Limit.Rate, c.Limit.Burst = r, burst
	c.Law.Trip = c.budget
	c.setPlans(ratelimit.Plan{Rate: 1, Burst: 1}, nil)
	return newLimiter(&c, w.store)
}

// load offers perSec requests a second to every process for length.
func (w *far) load(key string, perSec float64, length time.Duration) {
	begin := time.Now()
	for i, l := range w.procs {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		w.wg.Go(func() {
			for {
				time.Sleep(time.Duration(rnd.ExpFloat64() / perSec * float64(time.Second)))
				if time.Since(begin) >= length {
					return
				}
				w.wg.Go(func() { w.take(l, key, begin) })
			}
		})
	}
	w.wg.Wait()
}

func (w *far) take(l *Limiter, key string, begin time.Time) {
	from := time.Now()
	d := l.Take(context.Background(), from, ratelimit.Key{ID: key}, 1, 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrived = append(w.arrived, from.Sub(begin))
	w.longest = max(w.longest, time.Since(from))
	if d.OK {
		w.admitted = append(w.admitted, time.Since(begin))
		if d.Source == ratelimit.SourceShare {
			w.local++
		}
	}
}

// ideal is what one bucket in memory admits of the same arrivals.
func (w *far) ideal(r float64, burst int) (n int) {
	b, zero := rate.NewLimiter(rate.Limit(r), burst), time.Unix(0, 0)
	slices.Sort(w.arrived)
	for _, at := range w.arrived {
		if b.AllowN(zero.Add(at), 1) && at >= warmUp {
			n++
		}
	}
	return n
}

// warmUp is left out of what is compared: the first answers are a round trip away.
const warmUp = time.Second

func (w *far) report(r float64, burst int) (used, over float64) {
	passed := 0
	for _, at := range w.admitted {
		if at >= warmUp {
			passed++
		}
	}
	used = float64(passed) / float64(w.ideal(r, burst))
	over = accounttest.Excess(w.admitted, r, burst)
	calls, changes, wasted := 0, uint64(0), uint64(0)
	for _, l := range w.procs {
		calls += int(l.Snapshot().Calls[0].Count)
		changes += l.Snapshot().Changes
		wasted += l.Snapshot().Wasted
	}
	w.t.Logf("offered %d, admitted %d (%.1f %% of one bucket), %.2f over, %.1f %% local, %.2f calls each, longest %v, %d wasted, %d changes",
		len(w.arrived), len(w.admitted), 100*used, over, 100*float64(w.local)/float64(len(w.admitted)),
		float64(calls)/float64(len(w.admitted)), w.longest, wasted, changes)
	if changes != 0 {
		w.t.Errorf("the state changed %d times", changes)
	}
	return used, over
}

var distances = []time.Duration{time.Millisecond, 5 * time.Millisecond, 15 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}

// Case ST-01: tried on the product behind a slow link
func TestAStoreThatAnswersLateStarvesNoCaller(t *testing.T) {
	for _, trip := range distances {
		for _, jitter := range []time.Duration{0, trip / 4} {
			t.Run(fmt.Sprintf("%v+%v", trip, jitter), func(t *testing.T) {
				atDistance(t, 1, 4, 20, trip, jitter, nil, func(t *testing.T, w *far) {
					w.load("a", 20, 10*time.Second)
					used, over := w.report(4, 20)
					way := int(math.Ceil(4 * 2 * trip.Seconds())) // under way at either end
					if n := len(w.admitted); over > 1 || used < 0.97 || n < 59-way || n > 61 {
						t.Errorf("%d admitted, want 60 ± 1 less %d under way; %.2f over", n, way, over)
					}
				})
			})
		}
	}
}

func TestLimitsAreUsedAtAnyDistance(t *testing.T) {
	for _, c := range []struct {
		name  string
		procs int
		rate  float64
		burst int
		each  float64 // requests a second and process
	}{
		{"half the limit", 1, 40, 20, 20},
		{"half of a small limit", 1, 4, 20, 2},
		{"two over the limit", 2, 4, 20, 8},
		{"eight over the limit", 8, 100, 100, 25},
		{"eight, leased, over", 8, 1000, 1000, 250},
		{"eight, leased, half", 8, 1000, 500, 60},
		{"one, leased, over", 1, 1000, 600, 2000},
	} {
		for _, trip := range distances {
			t.Run(fmt.Sprintf("%s/%v", c.name, trip), func(t *testing.T) {
				atDistance(t, c.procs, c.rate, c.burst, trip, trip/10, nil, func(t *testing.T, w *far) {
					w.load("other", 1, time.Second)
					w.arrived, w.admitted, w.local = nil, nil, 0
					w.load("a", c.each, 10*time.Second)
					if used, over := w.report(c.rate, c.burst); used < 0.97 || over > 1 {
						t.Errorf("%.1f %% used, %.2f over", 100*used, over)
					}
				})
			})
		}
	}
}

// One answer in two hundred is late by half a second.
func TestAFewLateAnswersAreNoNews(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  float64
		burst int
		each  float64
	}{{"a call each", 30, 30, 20}, {"leased", 1000, 500, 400}} {
		t.Run(c.name, func(t *testing.T) {
			atDistance(t, 1, c.rate, c.burst, 2*time.Millisecond, 0, nil, func(t *testing.T, w *far) {
				rnd := rand.New(rand.NewPCG(8, 9))
				w.store.delay = func() (there, back time.Duration) {
					if rnd.IntN(200) == 0 {
						return time.Millisecond, 450 * time.Millisecond
					}
					return time.Millisecond, time.Millisecond
				}
				w.load("a", c.each, 100*time.Second)
				used, over := w.report(c.rate, c.burst)
				if local := float64(w.local) / float64(len(w.admitted)); used < 0.99 || over > 1 || local > 0.01 {
					t.Errorf("%.1f %% used, %.1f over, %.2f %% local", 100*used, over, 100*local)
				}
			})
		})
	}
}

// Case ST-01: tried on the product, a request's timeout below the round trip
func TestTimeoutsAreKeptAndLateGrantsAreUsed(t *testing.T) {
	options := []option{timeouts(20*time.Millisecond, 100*time.Millisecond)}
	for _, trip := range []time.Duration{25 * time.Millisecond, 50 * time.Millisecond, 80 * time.Millisecond} {
		for _, perSec := range []float64{2, 20} {
			t.Run(fmt.Sprintf("%v/%v", trip, perSec), func(t *testing.T) {
				atDistance(t, 1, 4, 20, trip, 0, options, func(t *testing.T, w *far) {
					w.load("a", perSec, 30*time.Second)
					used, over := w.report(4, 20)
					if used < 0.96 || over > 1 || w.longest > 20*time.Millisecond {
						t.Errorf("%.1f %% used, %.2f over, the longest wait %v", 100*used, over, w.longest)
					}
				})
			})
		}
	}
}

// What is granted after the request gave up is kept for the key's next one.
func TestALateGrantIsKept(t *testing.T) {
	atDistance(t, 1, slow, 10, 60*time.Millisecond, 0, []option{timeouts(20*time.Millisecond, time.Second)}, func(t *testing.T, w *far) {
		l := w.procs[0]
		ctx, leave := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer leave()
		if d := l.Take(ctx, time.Now(), ratelimit.Key{ID: "a"}, 1, 0); d.OK {
			t.Fatalf("%+v", d)
		}
		time.Sleep(100 * time.Millisecond)
		if s := l.Snapshot(); s.Held != 1 {
			t.Fatalf("%+v", s)
		}
		if d, took := timed(l, "a"); !d.OK || d.Source != ratelimit.SourceDirect || took != 0 {
			t.Errorf("%+v after %v", d, took)
		}
	})
}
