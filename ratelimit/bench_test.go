package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"sync"
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

// BenchmarkTake measures one decision beside the bare pieces: run with -cpu 1,2.
// Keys are visited in an order that defeats the prefetcher; the clock moves, so
// both verdicts occur.
func BenchmarkTake(b *testing.B) {
	for _, keys := range []int{1, 10_000, 1_000_000} {
		ids := make([]string, keys)
		for i := range ids {
			ids[i] = "key-" + strconv.Itoa(i*7919%keys)
		}
		buckets := PerKey(50, 100)
		plain := &mapped{m: map[string]*rate.Limiter{}}
		smap := &synced{}
		for _, rival := range []struct {
			name  string
			allow func(time.Time, string) bool
		}{
			{"buckets", func(now time.Time, id string) bool {
				return buckets.Take(context.Background(), now, Key{Space: "key", ID: id}, 1, 0).OK
			}},
			{"map+mutex", plain.allow},
			{"sync.Map", smap.allow},
		} {
			b.Run(fmt.Sprintf("%s/keys=%d", rival.name, keys), func(b *testing.B) {
				benchmarkAllow(b, ids, rival.allow)
			})
		}
	}
}

func benchmarkAllow(b *testing.B, ids []string, allow func(time.Time, string) bool) {
	start := time.Now()
	for _, id := range ids {
		allow(start, id)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		i := len(ids) / 3
		for pb.Next() {
			if i++; i >= len(ids) {
				i = 0
			}
			allow(start.Add(time.Duration(i)*time.Microsecond), ids[i])
		}
	})
}

// BenchmarkLongestStep reports the longest decision while a million keys come, and
// the longest while they are forgotten.
func BenchmarkLongestStep(b *testing.B) {
	for b.Loop() {
		l := PerKey(1000, 1)
		var come, went time.Duration
		now := epoch
		for i := range 1_000_000 {
			id := strconv.Itoa(i)
			start := time.Now()
			ask1(l, now, id)
			come = max(come, time.Since(start))
		}
		for range 600 {
			now = now.Add(100 * time.Millisecond)
			start := time.Now()
			ask1(l, now, "light")
			went = max(went, time.Since(start))
		}
		b.ReportMetric(float64(come.Microseconds()), "µs/longest-coming")
		b.ReportMetric(float64(went.Microseconds()), "µs/longest-going")
	}
}
