package queue_test

import (
	"testing"
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

func TestForceTakesASlotAboveTheLimit(t *testing.T) {
	s, err := queue.NewSlots(queue.Config{Limit: shed.Fixed(1), MaxWait: queue.NoWait})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	var grants []queue.Grant
	for range 3 {
		grants = append(grants, s.Force(now, queue.Ticket{}))
	}
	if n := s.Stats().InFlight; n != 3 {
		t.Errorf("in flight = %d, want 3", n)
	}
	if _, err := s.TryAcquire(now, queue.Ticket{}); err != shed.Capacity {
		t.Errorf("error = %v, want capacity", err)
	}
	for _, g := range grants {
		if _, ok := s.Release(g, shed.Served); !ok {
			t.Error("a forced slot was not held")
		}
	}
	if _, err := s.TryAcquire(now, queue.Ticket{}); err != nil {
		t.Errorf("after release: %v", err)
	}
}

func TestOnceIsTrueOncePerSlot(t *testing.T) {
	s, _ := queue.NewSlots(queue.Config{Limit: shed.Fixed(1)})
	for range 2 { // the second slot is the same row
		g, err := s.TryAcquire(time.Now(), queue.Ticket{})
		if err != nil {
			t.Fatal(err)
		}
		twin := g
		if !s.Once(g) || s.Once(g) || s.Once(twin) {
			t.Error("Once is true exactly once while the slot is held")
		}
		s.Release(g, shed.Served)
		if s.Once(g) {
			t.Error("Once is true for a slot that was given back")
		}
	}
}
