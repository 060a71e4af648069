package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

func BenchmarkSlots(b *testing.B) {
	ctx := context.Background()
	b.Run("semaphore", func(b *testing.B) {
		sem := make(chan struct{}, 64)
		b.ReportAllocs()
		for b.Loop() {
			sem <- struct{}{}
			<-sem
		}
	})
	b.Run("uncontended", func(b *testing.B) {
		s := newSlots(b, queue.Config{Limit: shed.Fixed(64)})
		t := queue.Ticket{Tenant: "a"}
		now := time.Now()
		b.ReportAllocs()
		for b.Loop() {
			g, err := s.Acquire(ctx, now, t)
			if err != nil {
				b.Fatal(err)
			}
			s.Release(g, shed.Served)
		}
	})
	b.Run("uncontended/deadline", func(b *testing.B) {
		s := newSlots(b, queue.Config{Limit: shed.Fixed(64)})
		t := queue.Ticket{Tenant: "a", Deadline: time.Now().Add(time.Hour)}
		now := time.Now()
		b.ReportAllocs()
		for b.Loop() {
			g, err := s.Acquire(ctx, now, t)
			if err != nil {
				b.Fatal(err)
			}
			s.Release(g, shed.Served)
		}
	})
}
