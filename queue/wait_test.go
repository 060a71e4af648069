package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// Case QU-06: from reports about waiting and priority in other limiters
func TestAFullQueueRefusesAtOnceWithRetryAfter(t *testing.T) {
	t.Run("Slots", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 2, MaxWait: time.Second})
			start := time.Now()
			ran, full := make(chan queue.Grant, 10), make(chan time.Duration, 10)
			for range 10 {
				go func() {
					g, err := s.Acquire(t.Context(), time.Now(), queue.Ticket{})
					if errors.Is(err, shed.QueueFull) {
						if after := s.RetryAfter(priority.Normal); after < time.Second || after%time.Second != 0 {
							t.Errorf("Retry-After %v", after)
						}
						full <- time.Since(start)
						return
					}
					ran <- g
				}()
			}
			synctest.Wait()
			checkWaiting(t, s, 2)
			if len(ran) != 1 || len(full) != 7 {
				t.Fatalf("%d run, %d refused, want 1 and 7", len(ran), len(full))
			}
			for range 7 {
				if after := <-full; after > 50*time.Millisecond {
					t.Errorf("refused after %v", after)
				}
			}
			for range 3 {
				s.Release(<-ran, shed.Served)
			}
			checkWaiting(t, s, 0)
		})
	})
}

// Case QU-10: from reports about waiting and priority in other limiters
func TestNoWaitRefusesAtOnceAndZeroIsTheDefaultStay(t *testing.T) {
	t.Run("Slots", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 10, MaxWait: queue.NoWait})
			hold(t, s, 1, queue.Ticket{})
			a := <-acquire(t.Context(), s, queue.Ticket{MaxWait: time.Hour})
			if !errors.Is(a.err, shed.Capacity) || a.after != 0 {
				t.Fatalf("got %v after %v, want a refusal for capacity at once", a.err, a.after)
			}
		})
	})
	t.Run("zero is the default, not for ever", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 10})
			hold(t, s, 1, queue.Ticket{})
			a := <-acquire(t.Context(), s, queue.Ticket{})
			if !errors.Is(a.err, shed.WaitedTooLong) || a.after != queue.DefaultMaxWait {
				t.Fatalf("got %v after %v", a.err, a.after)
			}
		})
	})
}

// Case PR-01: from reports about waiting and priority in other limiters
func TestTheLowestLevelIsServedUnderAFloodOfHigherWork(t *testing.T) {
	t.Run("Slots", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWait: 10 * time.Second})
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			work := func(ticket queue.Ticket) error {
				g, err := s.Acquire(t.Context(), time.Now(), ticket)
				if err == nil {
					time.Sleep(10 * time.Millisecond)
					s.Release(g, shed.Served)
				}
				return err
			}
			var all sync.WaitGroup
			all.Go(func() {
				for ctx.Err() == nil {
					all.Go(func() { work(queue.Ticket{Level: priority.Critical, MaxWait: 250 * time.Millisecond}) })
					time.Sleep(time.Second / 150)
				}
			})
			time.Sleep(2 * time.Second) // the queue is full of urgent work by now
			start := time.Now()
			if err := work(queue.Ticket{Level: priority.Batch}); err != nil {
				t.Errorf("the low request got %v after %v; a twentieth of the time is the lowest class's", err, time.Since(start))
			}
			if after := time.Since(start); after > 300*time.Millisecond {
				t.Errorf("the low request ran after %v, twenty turns are 200 ms", after)
			}
			all.Wait()
		})
	})
}

// Case PR-06: from reports about waiting and priority in other limiters
func TestCallersStartInTheDocumentedOrder(t *testing.T) {
	t.Run("in order of arrival", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			// 100 arrivals 5 ms apart, served in 5.1 ms: the wait grows to about 10 ms, far
			// from half the allowance, so the order is that of arrival.
			if got := startOrder(t, 100, 5*time.Millisecond, 5100*time.Microsecond); !slices.IsSorted(got) || len(got) != 100 {
				t.Fatalf("%d started, in the order %v", len(got), got)
			}
		})
	})
	t.Run("newest first once the head has waited half its stay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWait: time.Second})
			held := hold(t, s, 1, queue.Ticket{})
			first := acquire(t.Context(), s, queue.Ticket{})
			time.Sleep(499 * time.Millisecond)
			second := acquire(t.Context(), s, queue.Ticket{})
			time.Sleep(time.Millisecond)
			s.Release(held[0], shed.Served)
			if a := <-second; a.err != nil {
				t.Fatalf("the newest got %v", a.err)
			}
			if a := <-first; !errors.Is(a.err, shed.WaitedTooLong) || a.after != time.Second {
				t.Fatalf("the oldest got %v after %v", a.err, a.after)
			}
		})
	})
	t.Run("a newcomer at the instant of a release", func(t *testing.T) {
		core, _ := queue.NewCore(queue.Config{Limit: shed.Fixed(1)})
		now := time.Now()
		var a, b, c queue.Waiter
		core.Offer(now, &a)
		core.Offer(now, &b)
		core.Release(now, a.Grant, shed.Served)
		if v, _ := core.Offer(now, &c); v != entry.Waits {
			t.Fatalf("the newcomer: %v, past somebody who waits", v)
		}
		if got := core.Next(now); got != &b {
			t.Fatal("the slot did not go to the one who waited")
		}
	})
}

// startOrder runs n arrivals the given gap apart through one slot and returns the
// order in which they started.
func startOrder(t *testing.T, n int, gap, service time.Duration) (order []int) {
	s := newSlots(t, queue.Config{Limit: shed.Fixed(1)})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			g, err := s.Acquire(t.Context(), time.Now(), queue.Ticket{})
			if err != nil {
				return
			}
			order = append(order, i) // one slot: nobody else is here
			time.Sleep(service)
			s.Release(g, shed.Served)
		})
		time.Sleep(gap)
	}
	all.Wait()
	return order
}

// Case PR-08: from reports about waiting and priority in other limiters
func TestTheReserveIsForCriticalOnly(t *testing.T) {
	t.Run("Slots", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(10), CriticalReserve: 2, MaxWait: 20 * time.Second})
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					g, err := s.Acquire(t.Context(), time.Now(), queue.Ticket{Level: priority.Batch})
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(5 * time.Second)
					s.Release(g, shed.Served)
				})
			}
			synctest.Wait()
			if n := s.Stats().InFlight; n != 8 {
				t.Errorf("low work holds %d slots, want 8", n)
			}
			for range 2 {
				a := <-acquire(t.Context(), s, queue.Ticket{Level: priority.Critical})
				if a.err != nil || a.after != 0 {
					t.Errorf("critical got %v after %v", a.err, a.after)
				}
				defer s.Release(a.Grant, shed.Served)
			}
			for range 4 { // until the last low one is done
				time.Sleep(4 * time.Second)
				synctest.Wait()
				if n := s.Stats().InFlight; n > 8+2 {
					t.Errorf("low work holds %d slots", n-2)
				}
			}
			all.Wait()
		})
	})
}

// However a refusal comes about, it is counted where it is asked when to come back: with
// one admission a second, the forty refused are told of as many seconds as the level may
// be told.
func TestWhoIsRefusedIsToldWhenToComeBackInTheSameStep(t *testing.T) {
	for name, c := range map[string]struct {
		config queue.Config
		ctx    func(*testing.T) context.Context
	}{
		"at the door":  {queue.Config{Limit: shed.Fixed(1), MaxWait: queue.NoWait}, func(t *testing.T) context.Context { return t.Context() }},
		"after a wait": {queue.Config{Limit: shed.Fixed(1), MaxWait: time.Millisecond}, func(t *testing.T) context.Context { return t.Context() }},
		"its time was up": {queue.Config{Limit: shed.Fixed(1)}, func(t *testing.T) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlots(t, c.config)
				if _, after, err := s.Ask(t.Context(), time.Now(), &queue.Ticket{}); err != nil || after != 0 {
					t.Fatalf("admitted with %v, %v", after, err)
				}
				var last time.Duration
				for range 40 {
					_, after, err := s.Ask(c.ctx(t), time.Now(), &queue.Ticket{})
					if err == nil || after < time.Second || after%time.Second != 0 {
						t.Fatalf("refused with %v, after %v", err, after)
					}
					last = after
				}
				if last < 30*time.Second {
					t.Errorf("the last of them after %v", last)
				}
			})
		})
	}
}
