package queue_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

func TestALimitThatGrowsDispatchesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWait: time.Second})
		hold(t, s, 1, queue.Ticket{})
		a, b := acquire(t.Context(), s, queue.Ticket{}), acquire(t.Context(), s, queue.Ticket{})
		synctest.Wait()
		if err := s.Update(queue.Config{Limit: shed.Fixed(3), MaxWait: time.Second}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []<-chan answer{a, b} {
			if got := <-c; got.err != nil || got.after != 0 {
				t.Fatalf("got %v after %v", got.err, got.after)
			}
		}
	})
}

func TestALoweredLimitDrainsAndALoweredBoundKeepsItsWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(t, queue.Config{Limit: shed.Fixed(3), MaxWait: time.Second})
		held := hold(t, s, 3, queue.Ticket{})
		waiting := acquire(t.Context(), s, queue.Ticket{})
		other := acquire(t.Context(), s, queue.Ticket{})
		synctest.Wait()
		if err := s.Update(queue.Config{Limit: shed.Fixed(1), MaxWaiting: 1}); err != nil {
			t.Fatal(err)
		}
		if st := s.Stats(); st.InFlight != 3 || st.Limit != 1 || st.Bound != 1 {
			t.Fatalf("%+v", st)
		}
		checkWaiting(t, s, 2)
		s.Release(held[0], shed.Served)
		s.Release(held[1], shed.Served)
		checkWaiting(t, s, 2)
		s.Release(held[2], shed.Served)
		checkWaiting(t, s, 1)
		s.Drain()
		for _, c := range []<-chan answer{waiting, other} {
			if a := <-c; a.err != nil && !errors.Is(a.err, shed.Draining) {
				t.Fatalf("got %v", a.err)
			}
		}
	})
}

func TestABadUpdateChangesNothing(t *testing.T) {
	s := newSlots(t, queue.Config{Limit: shed.Fixed(3)})
	for _, bad := range []queue.Config{{Limit: shed.Fixed(0)}, {MaxWait: -2}, {MaxWaiting: -1}, {MaxWaitingBytes: -1}, {CriticalReserve: -1}, {Limit: shed.Fixed(2), CriticalReserve: 2}, {Limit: shed.Throughput{Max: 10}, CriticalReserve: 10}, {WaitingShare: [priority.Count]float64{1, 1, 1, 2}}} {
		if err := s.Update(bad); err == nil {
			t.Errorf("%+v was adopted", bad)
		}
		if _, err := queue.NewSlots(bad); err == nil {
			t.Errorf("%+v was built", bad)
		}
	}
	if n := s.Stats().Limit; n != 3 {
		t.Fatalf("limit %d", n)
	}
}

func TestDrainAnswersWhoWaitsAndRefusesNewcomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWait: time.Hour})
		held := hold(t, s, 1, queue.Ticket{})
		waiting := acquire(t.Context(), s, queue.Ticket{})
		synctest.Wait()
		s.Drain()
		s.Drain()
		if a := <-waiting; !errors.Is(a.err, shed.Draining) || a.after != 0 {
			t.Fatalf("the waiter got %v after %v", a.err, a.after)
		}
		if _, err := s.TryAcquire(time.Now(), queue.Ticket{}); !errors.Is(err, shed.Draining) {
			t.Fatalf("a newcomer got %v", err)
		}
		if n := s.Stats().InFlight; n != 1 {
			t.Fatalf("running work: %d, want 1", n)
		}
		s.Release(held[0], shed.Served)
	})
}
