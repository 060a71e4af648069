//go:build unix

package queue_test

import (
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// Five seconds of a held slot cost 500 waiters no work: nothing runs between the
// moment they wait and the release. In a bubble five seconds pass at once if and
// only if everybody sleeps; a loop that polls would be woken thousands of times,
// which the process time shows.
//
// Case QU-11: from reports about waiting and priority in other limiters
func TestWaitingCostsNoProcessorTime(t *testing.T) {
	t.Run("Slots", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 500, MaxWait: 10 * time.Second})
			held := hold(t, s, 1, queue.Ticket{})
			var waits sync.WaitGroup
			for range 500 {
				waits.Go(func() {
					g, err := s.Acquire(t.Context(), time.Now(), queue.Ticket{})
					if err != nil {
						t.Error(err)
						return
					}
					s.Release(g, shed.Served)
				})
			}
			synctest.Wait()
			checkWaiting(t, s, 500)
			before := processTime(t)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if spent := processTime(t) - before; spent > 250*time.Millisecond {
				t.Errorf("waiting took %v of processor time", spent)
			}
			s.Release(held[0], shed.Served)
			waits.Wait()
			checkWaiting(t, s, 0)
		})
	})
}

func processTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
