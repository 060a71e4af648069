package ratelimit

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// The bare pieces a service would otherwise use: a rate.Limiter per key, in a map
// under a mutex or in a sync.Map.
type mapped struct {
	mu sync.Mutex
	m  map[string]*rate.Limiter
}

func (m *mapped) allow(now time.Time, id string) bool {
	m.mu.Lock()
	l := m.m[id]
	if l == nil {
		l = rate.NewLimiter(50, 100)
		m.m[id] = l
	}
	m.mu.Unlock()
	return l.AllowN(now, 1)
}

type synced struct{ m sync.Map }

func (s *synced) allow(now time.Time, id string) bool {
	l, ok := s.m.Load(id)
	if !ok {
		l, _ = s.m.LoadOrStore(id, rate.NewLimiter(50, 100))
	}
	return l.(*rate.Limiter).AllowN(now, 1)
}

type rival struct {
	name  string
	allow func(time.Time, string) bool
}

func rivals() []rival {
	buckets := PerKey(50, 100)
	plain := &mapped{m: map[string]*rate.Limiter{}}
	smap := &synced{}
	return []rival{
		{"buckets", func(now time.Time, id string) bool {
			return buckets.Take(context.Background(), now, Key{Space: "key", ID: id}, 1, 0).OK
		}},
		{"map+mutex", plain.allow},
		{"sync.Map", smap.allow},
	}
}

// someKeys are distinct and in an order that defeats the prefetcher.
func someKeys(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "key-" + strconv.Itoa(i*7919%n)
	}
	return ids
}

// BenchmarkTake measures one decision beside the bare pieces: run with -cpu 1,2.
// The rivals take turns, 20 ms each, so that whatever else the machine does hits
// them alike; x-sync.Map and x-map+mutex are medians of the pairs' ratios.
func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{1, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			ids, all := someKeys(keys), rivals()
			for _, r := range all {
				for _, id := range ids {
					r.allow(epoch, id)
				}
			}
			took := make([][]float64, len(all))
			round := 0
			for b.Loop() {
				for range 25 {
					round++
					for i, r := range all {
						took[i] = append(took[i], turn(ids, round, r.allow))
					}
				}
			}
			report(b, all, took)
		})
	}
}

// turn returns nanoseconds of wall time per decision over all CPUs.
func turn(ids []string, round int, allow func(time.Time, string) bool) float64 {
	var done atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for w := range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			at := (round*104729 + w*len(ids)/2) % len(ids)
			for time.Since(start) < 20*time.Millisecond {
				// A batch takes as long on the limiters' clock as it has tokens for.
				now := epoch.Add(time.Duration(round) * 100 * time.Millisecond)
				for range 500 {
					if at++; at >= len(ids) {
						at = 0
					}
					allow(now, ids[at])
				}
				done.Add(500)
			}
		})
	}
	group.Wait()
	return float64(time.Since(start).Nanoseconds()) / float64(done.Load())
}

func report(b *testing.B, all []rival, took [][]float64) {
	for i, r := range all {
		ratios := make([]float64, len(took[i]))
		for n := range ratios {
			ratios[n] = took[0][n] / took[i][n]
		}
		b.ReportMetric(median(took[i]), "ns/"+r.name)
		if i > 0 {
			b.ReportMetric(median(ratios), "x-"+r.name)
		}
	}
	b.ReportMetric(0, "ns/op")
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func TestTakeAllocatesNothing(t *testing.T) {
	l, i := PerKey(50, 2), 0
	ids := someKeys(100)
	for _, id := range ids {
		ask1(l, epoch, id)
	}
	allocs := testing.AllocsPerRun(1000, func() {
		i++
		if d := ask1(l, epoch, ids[i%len(ids)]); d.OK {
			d.Undo(epoch)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per decision, want none", allocs)
	}
}
