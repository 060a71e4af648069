package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// BenchmarkSlots is one slot taken and given back, beside a channel semaphore,
// which knows no class, caller, deadline or bound, and keeps no figures.
func BenchmarkSlots(b *testing.B) {
	b.Run("uncontended/semaphore", func(b *testing.B) {
		sem := make(chan struct{}, 64)
		b.ReportAllocs()
		for b.Loop() {
			sem <- struct{}{}
			<-sem
		}
	})
	b.Run("uncontended/slots", func(b *testing.B) { benchPair(b, shed.Fixed(64), queue.Ticket{Caller: "a"}) })
	b.Run("uncontended/slots-deadline", func(b *testing.B) {
		benchPair(b, shed.Fixed(64), queue.Ticket{Caller: "a", Deadline: time.Now().Add(time.Hour)})
	})
	b.Run("uncontended/slots-learned", func(b *testing.B) {
		benchPair(b, shed.Throughput{Max: 512}, queue.Ticket{Caller: "a"})
	})
	b.Run("uncontended/slots-learned-now", benchLearned)
	b.Run("parallel/semaphore", func(b *testing.B) {
		sem := make(chan struct{}, 64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				sem <- struct{}{}
				<-sem
			}
		})
	})
	b.Run("parallel/slots", func(b *testing.B) {
		s := newSlots(b, queue.Config{Limit: shed.Fixed(64)})
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				now := time.Now()
				if g, err := s.Acquire(context.Background(), now, queue.Ticket{}); err == nil {
					s.Release(g, shed.Served)
				}
			}
		})
	})
	b.Run("waiting/semaphore", func(b *testing.B) {
		sem := make(chan struct{}, 1)
		b.SetParallelism(50)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				sem <- struct{}{}
				<-sem
			}
		})
	})
	b.Run("waiting/slots", func(b *testing.B) {
		s := newSlots(b, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 1000, MaxWait: time.Minute})
		b.SetParallelism(50)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				g, err := s.Acquire(context.Background(), time.Now(), queue.Ticket{})
				if err != nil {
					b.Error(err)
					return
				}
				s.Release(g, shed.Served)
			}
		})
	})
}

// benchLearned is a pair under a learned limit, with instants that the caller has: what
// is left is the slots' own cost.
func benchLearned(b *testing.B) {
	s := newSlots(b, queue.Config{Limit: shed.Throughput{Max: 512}})
	ctx, now := context.Background(), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		g, err := s.Acquire(ctx, now, queue.Ticket{Caller: "a"})
		if err != nil {
			b.Fatal(err)
		}
		now = now.Add(time.Microsecond)
		s.ReleaseAt(now, g, shed.Served)
	}
}

func benchPair(b *testing.B, limit shed.Limit, t queue.Ticket) {
	s := newSlots(b, queue.Config{Limit: limit})
	ctx, now := context.Background(), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		g, err := s.Acquire(ctx, now, t)
		if err != nil {
			b.Fatal(err)
		}
		s.Release(g, shed.Served)
	}
}

// BenchmarkCore holds the number of waiters and does one thing to one of them and
// its undoing.
func BenchmarkCore(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("cancel-offer/%d", n), func(b *testing.B) {
			core, waiters, now := crowd(b, n)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				w := waiters[i%len(waiters)]
				i += 7919
				if !core.Cancel(now, w) {
					b.Fatal("not waiting")
				}
				if v, _ := core.Offer(now, w); v != entry.Waits {
					b.Fatal(v, w.Reason)
				}
			}
		})
		b.Run(fmt.Sprintf("dispatch-offer/%d", n), func(b *testing.B) {
			core, _, now := crowd(b, n)
			var g queue.Grant
			b.ReportAllocs()
			for b.Loop() {
				core.Release(now, g, shed.Ignored)
				if g.Held() {
					core.Offer(now, held)
				} else {
					core.Release(now, first, shed.Ignored)
				}
				if held = core.Next(now); held == nil {
					b.Fatal("nobody goes")
				}
				g = held.Grant
			}
		})
		b.Run(fmt.Sprintf("evict-offer/%d", n), func(b *testing.B) {
			core, _, now := crowd(b, n)
			w := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical}}
			b.ReportAllocs()
			for b.Loop() {
				_, evictee := core.Offer(now, w) // somebody of a lower class goes
				if evictee == nil {
					b.Fatal("nobody went")
				}
				core.Cancel(now, w)
				core.Offer(now, evictee)
			}
		})
	}
}

var (
	held  *queue.Waiter
	first queue.Grant
)

// crowd returns a core whose one slot is taken and whose queue is full: three
// classes, a thousand callers, every other waiter with a deadline.
func crowd(b *testing.B, n int) (*queue.Core, []*queue.Waiter, time.Time) {
	core, err := queue.NewCore(queue.Config{Limit: shed.Fixed(1), MaxWaiting: n, MaxWait: time.Hour, WaitingShare: [priority.Count]float64{1, 1, 1, 1}})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	holder := new(queue.Waiter)
	core.Offer(now, holder)
	first = holder.Grant
	waiters := make([]*queue.Waiter, n)
	for i := range waiters {
		w := &queue.Waiter{Ticket: queue.Ticket{Level: priority.All()[i%3], Caller: strconv.Itoa(i % 1009)}}
		if i%2 == 0 {
			w.Deadline = now.Add(time.Hour + time.Duration(i*7919%n)*time.Millisecond)
		}
		if v, _ := core.Offer(now, w); v != entry.Waits {
			b.Fatalf("waiter %d: %v %v", i, v, w.Reason)
		}
		waiters[i] = w
	}
	return core, waiters, now
}

// BenchmarkReleaseToRunning is the time from a release to the next holder running,
// while a thousand wait.
func BenchmarkReleaseToRunning(b *testing.B) {
	const crowd = 1000
	s := newSlots(b, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 2 * crowd, MaxWait: time.Hour})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var released time.Time
	var took []time.Duration
	var all sync.WaitGroup
	done := make(chan struct{})
	for range crowd {
		all.Go(func() {
			for {
				g, err := s.Acquire(ctx, time.Now(), queue.Ticket{})
				if err != nil {
					return
				}
				now := time.Now()
				if !released.IsZero() {
					if took = append(took, now.Sub(released)); len(took) == b.N {
						close(done)
					}
				}
				if len(took) >= b.N {
					stop()
				}
				released = time.Now()
				s.Release(g, shed.Ignored)
			}
		})
	}
	<-done
	all.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}
