package queue_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// What is refused without the lock is what a core would have refused: random tickets at
// slots where nobody waits, beside a core that is asked each time.
func TestADoorThatIsShutRefusesWhatACoreWould(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			config := queue.Config{Limit: shed.Throughput{Min: 1, Max: 6, Initial: 3}, MaxWait: queue.NoWait, CriticalReserve: int(seed % 2)}
			s := newSlots(t, config)
			core, err := queue.NewCore(config)
			if err != nil {
				t.Fatal(err)
			}
			type held struct{ slot, twin queue.Grant }
			var all []held
			for step := range 400 {
				time.Sleep(time.Duration(rnd.IntN(3)) * 4 * time.Millisecond)
				now := time.Now()
				if len(all) > 0 && rnd.IntN(4) == 0 {
					i := rnd.IntN(len(all))
					outcome := shed.Outcome(rnd.IntN(int(shed.Unmeasured) + 1))
					s.ReleaseAt(now, all[i].slot, outcome)
					core.Release(now, all[i].twin, outcome)
					all = append(all[:i], all[i+1:]...)
					continue
				}
				ticket := queue.Ticket{Level: priority.All()[rnd.IntN(priority.Count)], Slots: rnd.IntN(3), MaxWait: time.Duration(rnd.IntN(2)) * time.Second}
				if rnd.IntN(2) == 0 {
					ticket.Deadline = now.Add(time.Duration(rnd.IntN(60)-5) * time.Millisecond)
				}
				g, after, err := s.Ask(t.Context(), now, &ticket)
				w := &queue.Waiter{Ticket: ticket}
				core.Offer(now, w)
				if fmt.Sprint(err) != fmt.Sprint(w.Reason.Err()) || (after > 0) != (err != nil) || after > time.Minute {
					t.Fatalf("seed %d, step %d: %v, after %v; the core says %v", seed, step, err, after, w.Reason.Err())
				}
				if err == nil {
					all = append(all, held{g, w.Grant})
				}
			}
			got, want := s.Stats(), core.Stats(time.Now())
			if got.Refused != want.Refused || got.Admitted != want.Admitted || got.Limit != want.Limit || got.InFlight != want.InFlight {
				t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
			}
		})
	}
}

// However releases and refusals meet, none is lost: a slot that is free is given, and
// every attempt is counted once.
func TestNoReleaseIsMissedByADoorThatIsShut(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	const workers, rounds = 8, 3000
	s := newSlots(t, queue.Config{Limit: shed.Fixed(2), MaxWait: queue.NoWait})
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range rounds {
				g, _, err := s.Ask(t.Context(), time.Now(), &queue.Ticket{})
				if err != nil {
					continue
				}
				runtime.Gosched()
				s.Release(g, shed.Served)
				if s.Stats().InFlight > 2 {
					t.Error("more in flight than slots")
				}
			}
		})
	}
	all.Wait()
	for range 2 {
		if _, _, err := s.Ask(t.Context(), time.Now(), &queue.Ticket{}); err != nil {
			t.Fatalf("a free slot is refused: %v", err)
		}
	}
	stats := s.Stats()
	admitted, refused := stats.Admitted[priority.Normal.Index()], stats.Refused[priority.Normal.Index()][shed.Capacity]
	if admitted+refused != workers*rounds+2 || refused == 0 {
		t.Errorf("%d admitted and %d refused of %d", admitted, refused, workers*rounds+2)
	}
}
