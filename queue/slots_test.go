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

// Case QU-01: from reports about waiting and priority in other limiters
func TestAClientThatLeavesIsReplacedByTheNext(t *testing.T) {
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

// Case QU-04: from reports about waiting and priority in other limiters
func TestSlotsAreWholeAfterWaitersTimedOut(t *testing.T) {
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

func TestAReleaseCountsOnce(t *testing.T) {
	s := newSlots(t, queue.Config{Limit: shed.Fixed(2)})
	g := hold(t, s, 1, queue.Ticket{})[0]
	copied := g
	if _, ok := s.Release(g, shed.Served); !ok {
		t.Fatal("the first release found nothing")
	}
	again := hold(t, s, 1, queue.Ticket{})[0] // the same row, another use of it
	for _, stale := range []queue.Grant{g, copied, {}} {
		if _, ok := s.Release(stale, shed.Served); ok {
			t.Fatal("a second release found something")
		}
	}
	if n := s.Stats().InFlight; n != 1 {
		t.Fatalf("%d in flight, want 1", n)
	}
	s.Release(again, shed.Served)
}

// The client of the head leaves in the instant a slot comes free: whichever is
// seen first, the slot goes to the one behind, at once.
func TestCancellingTheHeadWakesThoseBehind(t *testing.T) {
	for name, releaseFirst := range map[string]bool{"left, then released": false, "released, then left": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlots(t, queue.Config{Limit: shed.Fixed(1), MaxWait: time.Second})
				held := hold(t, s, 1, queue.Ticket{})
				ctx, leave := context.WithCancel(t.Context())
				head := acquire(ctx, s, queue.Ticket{Level: priority.Critical})
				synctest.Wait()
				behind := acquire(t.Context(), s, queue.Ticket{})
				synctest.Wait()
				if releaseFirst {
					s.Release(held[0], shed.Served)
				}
				leave()
				if !releaseFirst {
					s.Release(held[0], shed.Served)
				}
				if a := <-head; !errors.Is(a.err, shed.ClientGone) {
					t.Fatalf("the head got %v", a.err)
				}
				if a := <-behind; a.err != nil || a.after != 0 {
					t.Fatalf("the one behind got %v after %v", a.err, a.after)
				}
				if st := s.Stats(); st.Admitted[priority.Critical.Index()] != 0 {
					t.Fatalf("a slot nobody used counts as admitted: %v", st.Admitted)
				}
			})
		})
	}
}

func TestAWaitEndsWithTheFirstOfDeadlineStayAndClient(t *testing.T) {
	for name, c := range map[string]struct {
		ticket  queue.Ticket
		ctx     time.Duration
		want    shed.Reason
		after   time.Duration
		useless time.Duration
	}{
		"the queue's stay":              {want: shed.WaitedTooLong, after: queue.DefaultMaxWait},
		"the ticket's own stay":         {ticket: queue.Ticket{MaxWait: 30 * time.Millisecond}, want: shed.WaitedTooLong, after: 30 * time.Millisecond},
		"never longer than the queue's": {ticket: queue.Ticket{MaxWait: time.Hour}, want: shed.WaitedTooLong, after: queue.DefaultMaxWait},
		"the deadline":                  {useless: 70 * time.Millisecond, want: shed.DeadlineUnmeetable, after: 70 * time.Millisecond},
		"the context's deadline":        {ctx: 60 * time.Millisecond, want: shed.DeadlineUnmeetable, after: 60 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlots(t, queue.Config{Limit: shed.Fixed(1)})
				hold(t, s, 1, queue.Ticket{})
				ctx := t.Context()
				if c.ctx > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, c.ctx)
					defer stop()
				}
				if c.useless > 0 {
					c.ticket.Deadline = time.Now().Add(c.useless)
				}
				if a := <-acquire(ctx, s, c.ticket); !errors.Is(a.err, c.want) || a.after != c.after {
					t.Fatalf("got %v after %v, want %v after %v", a.err, a.after, c.want, c.after)
				}
				checkWaiting(t, s, 0)
			})
		})
	}
}

func TestExpiredWorkGetsNoFreeSlot(t *testing.T) {
	s := newSlots(t, queue.Config{Limit: shed.Fixed(1)})
	now := time.Now()
	if _, err := s.TryAcquire(now, queue.Ticket{Deadline: now}); !errors.Is(err, shed.DeadlineUnmeetable) {
		t.Errorf("expired: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Acquire(gone, now, queue.Ticket{}); !errors.Is(err, shed.ClientGone) {
		t.Errorf("gone: %v", err)
	}
	if st := s.Stats(); st.InFlight != 0 || st.Refused[priority.Normal.Index()][shed.ClientGone] != 1 {
		t.Errorf("%+v", st)
	}
}

func TestMovesAreToldWithoutTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *queue.Slots
		told := 0
		s = newSlots(t, queue.Config{Limit: growing{}, OnMove: func(step shed.Step) {
			told++
			if st := s.Stats(); st.Limit != step.Limit || st.Moves[shed.CauseGrow] != 1 {
				t.Errorf("%+v after %+v", st, step)
			}
		}})
		held := hold(t, s, 1, queue.Ticket{})
		next := acquire(t.Context(), s, queue.Ticket{})
		if a := <-next; a.err != nil { // somebody waits, the law grows, the waiter goes
			t.Fatal(a.err)
		}
		s.Release(held[0], shed.Served)
		if told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}

// growing is a limit of one that becomes two as soon as somebody waits.
type growing struct{}

func (growing) New() (shed.Law, error) { return &growingLaw{1}, nil }

type growingLaw struct{ limit int }

func (g *growingLaw) Limit() int { return g.limit }
func (g *growingLaw) Note(_ time.Time, l shed.Load) shed.Step {
	if l.Waiting == 0 || g.limit == 2 {
		return shed.Step{}
	}
	g.limit = 2
	return shed.Step{Limit: 2, Cause: shed.CauseGrow}
}
func (g *growingLaw) Done(now time.Time, l shed.Load, _ shed.Sample) shed.Step { return g.Note(now, l) }
