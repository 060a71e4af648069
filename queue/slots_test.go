package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

func newSlots(t testing.TB, c queue.Config) *queue.Slots {
	t.Helper()
	s, err := queue.NewSlots(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hold takes n slots and returns the grants.
func hold(t testing.TB, s *queue.Slots, n int, ticket queue.Ticket) []queue.Grant {
	t.Helper()
	grants := make([]queue.Grant, n)
	for i := range grants {
		g, err := s.TryAcquire(time.Now(), ticket)
		if err != nil {
			t.Fatalf("slot %d of %d: %v", i+1, n, err)
		}
		grants[i] = g
	}
	return grants
}

// acquire asks in its own goroutine and returns where the answer will be.
func acquire(ctx context.Context, s *queue.Slots, ticket queue.Ticket) <-chan answer {
	c := make(chan answer, 1)
	now := time.Now()
	go func() {
		g, err := s.Acquire(ctx, now, ticket)
		c <- answer{g, err, time.Since(now)}
	}()
	return c
}

type answer struct {
	queue.Grant
	err   error
	after time.Duration
}

func checkWaiting(t *testing.T, s *queue.Slots, want int) {
	t.Helper()
	n := 0
	for _, w := range s.Stats().Waiting {
		n += w
	}
	if n != want {
		t.Fatalf("%d waiting, want %d", n, want)
	}
}

func TestCase_QU01(t *testing.T) {
	t.Run("Slots", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWait: time.Second})
			held := hold(t, s, 1, queue.Ticket{})
			ctx, leave := context.WithCancel(t.Context())
			first := acquire(ctx, s, queue.Ticket{})
			synctest.Wait()
			second := acquire(t.Context(), s, queue.Ticket{})
			time.Sleep(100 * time.Millisecond)
			checkWaiting(t, s, 2)
			leave()
			if a := <-first; !errors.Is(a.err, shed.ClientGone) || a.after != 100*time.Millisecond {
				t.Fatalf("the one who left got %v after %v", a.err, a.after)
			}
			checkWaiting(t, s, 1)
			s.Release(held[0], shed.Served)
			if a := <-second; a.err != nil || !a.Held() {
				t.Fatalf("the second got %v", a.err)
			}
			checkWaiting(t, s, 0)
		})
	})
}

func TestCase_QU04(t *testing.T) {
	t.Run("Slots", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(8), MaxWait: 50 * time.Millisecond})
			for round := range 100 {
				held := hold(t, s, 8, queue.Ticket{})
				var waits sync.WaitGroup
				for range 8 {
					waits.Go(func() {
						if _, err := s.Acquire(t.Context(), time.Now(), queue.Ticket{}); !errors.Is(err, shed.WaitedTooLong) {
							t.Errorf("round %d: a waiter got %v", round, err)
						}
					})
				}
				waits.Wait()
				for _, g := range held {
					s.Release(g, shed.Ignored)
				}
				for _, g := range hold(t, s, 8, queue.Ticket{}) {
					s.Release(g, shed.Ignored)
				}
			}
			if st := s.Stats(); st.InFlight != 0 || st.Admitted[priority.Normal.Index()] != 1600 {
				t.Fatalf("in the end %d in flight, %v admitted", st.InFlight, st.Admitted)
			}
		})
	})
}
