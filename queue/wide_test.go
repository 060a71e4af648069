package queue_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// opening is the time before a wide request, from when its turn came until it had all
// of its slots.
type opening struct {
	from    time.Time
	span    time.Duration
	idle    time.Duration // slot time that stayed free
	longest time.Duration // the longest piece running when it began
}

// playWide keeps narrow work waiting, and one wide request at a time, and returns every
// opening.
func playWide(t *testing.T, limit, width int, length time.Duration, wide *party, narrow ...*party) (all []opening) {
	t.Helper()
	wide.ticket.Slots, wide.out = width, 1
	l := newLoad(t, queue.Config{Limit: shed.Fixed(limit)}, append(narrow, wide)...)
	var o *opening
	last, taken := l.now, 0
	l.each = func() {
		if o != nil {
			o.idle += l.now.Sub(last) * time.Duration(limit-taken)
			o.span = l.now.Sub(o.from)
		}
		last, taken = l.now, l.core.Stats(l.now).InFlight
		if taken > limit {
			t.Fatalf("%d slots taken of %d", taken, limit)
		}
		running := slices.ContainsFunc(l.running, func(r run) bool { return l.owner[r.w] == wide && r.from.Equal(l.now) })
		switch {
		case o != nil && running:
			all, o = append(all, *o), nil
		case o == nil && l.core.WideWaits():
			o = &opening{from: l.now}
			for _, r := range l.running {
				o.longest = max(o.longest, r.to.Sub(r.from))
			}
		}
	}
	l.run(length)
	return all
}

func TestWideWorkIsNotStarvedAndLeavesLittleIdle(t *testing.T) {
	const limit = 8
	long, short := 200*time.Millisecond, 5*time.Millisecond
	for _, c := range []struct {
		name   string
		width  int
		narrow []*party
		short  bool // most narrow work is much shorter than the longest
	}{
		{"all alike", 8, []*party{{ticket: of("a", 1), takes: constant(long), out: 50}, {ticket: of("b", 1), takes: lognormal(long, 0.3, 1), out: 50}}, false},
		{"half the limit", 4, []*party{{ticket: of("a", 1), takes: lognormal(long, 0.3, 1), out: 50}}, false},
		{"mostly short", 8, []*party{
			{ticket: queue.Ticket{Caller: "a", Route: 1}, takes: lognormal(short, 0.3, 2), out: 50},
			{ticket: queue.Ticket{Caller: "b", Route: 2}, takes: lognormal(long, 0.1, 3), out: 1},
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			wide := &party{ticket: queue.Ticket{Caller: "wide", Route: 3}, takes: constant(100 * time.Millisecond)}
			all := playWide(t, limit, c.width, 60*time.Second, wide, c.narrow...)
			var sum, worst opening
			part, most := 0.0, 0.0
			for _, o := range all[2:] { // without the first, in which estimates are learned
				sum.span, sum.idle = sum.span+o.span, sum.idle+o.idle
				worst.span = max(worst.span, o.span)
				p := float64(o.idle) / (float64(c.width) / 2 * float64(o.longest))
				part, most = part+p/float64(len(all)-2), max(most, p)
			}
			idle := float64(sum.idle) / float64(limit*sum.span)
			t.Logf("%d started, at most %v after their turn; idle for %.2f of half of n longest pieces, at most %.2f; %.1f %% of the openings", len(all), worst.span, part, most, 100*idle)
			if longest := 500 * time.Millisecond; len(all) < 20 || worst.span > 2*longest {
				t.Errorf("%d started, at most %v after their turn", len(all), worst.span)
			}
			if part > 1 || most > 2 {
				t.Errorf("idle for %.2f of half of n longest pieces then running, at most %.2f", part, most)
			}
			if c.short && idle > 0.10 {
				t.Errorf("%.1f %% of the slots stayed idle meanwhile", 100*idle)
			}
		})
	}
}

func TestWideWorkHasItsShareOfTheSlotTime(t *testing.T) {
	wide := &party{ticket: queue.Ticket{Caller: "wide", Slots: 4}, takes: constant(100 * time.Millisecond), out: 20}
	narrow := &party{ticket: of("narrow", 1), takes: constant(20 * time.Millisecond), out: 50}
	l := newLoad(t, queue.Config{Limit: shed.Fixed(8)}, wide, narrow)
	l.run(3 * time.Second)
	l.run(10 * time.Second)
	if p := l.portion(); p < 47 || p > 53 {
		t.Errorf("wide work had %.1f %% of the slot time beside narrow work", p)
	}
}

// A law learns the same number of slots whether a backend, which does 16 slots' work at
// once, gets it in narrow or in wide pieces, and no admission goes above it.
func TestALawLearnsSlotsFromWideWork(t *testing.T) {
	const does = 16
	for _, c := range []struct {
		name         string
		narrow, wide int // requests out
		slots        int
	}{{"narrow", 200, 0, 1}, {"wide", 0, 50, 4}, {"both", 100, 12, 4}, {"half the limit", 100, 10, 8}} {
		t.Run(c.name, func(t *testing.T) {
			var l *load
			slows := func(taken int) func() time.Duration {
				return func() time.Duration {
					taken := taken
					if l == nil {
						return 50 * time.Millisecond
					}
					for _, r := range l.running {
						taken += max(l.owner[r.w].ticket.Slots, 1)
					}
					if s := l.core.Stats(l.now); taken > s.Limit || taken != s.InFlight {
						t.Errorf("%d slots taken of %d, %d known", taken, s.Limit, s.InFlight)
					}
					return 50 * time.Millisecond * time.Duration(max(taken, does)) / does
				}
			}
			narrow := &party{ticket: of("narrow", 1), takes: slows(1), out: c.narrow}
			wide := &party{ticket: queue.Ticket{Caller: "wide", Slots: c.slots, Route: 1}, takes: slows(c.slots), out: c.wide}
			l = newLoad(t, queue.Config{Limit: shed.Throughput{Max: 256}}, narrow, wide)
			l.run(60 * time.Second)
			sum, ended := 0, 0
			for range 60 {
				l.run(time.Second)
				sum += l.core.Stats(l.now).Limit
				ended += narrow.served + c.slots*wide.served
			}
			limit := float64(sum) / 60
			if most := 60 * does * 20; ended < most*17/20 {
				t.Errorf("%d slots' work ended, of %d that the backend does", ended, most)
			}
			if limit < 0.8*does || limit > 2*does {
				t.Errorf("limit %.1f in the mean, for a backend that does %d at once", limit, does)
			}
		})
	}
}

func TestWorkWiderThanTheLimitHasAllOfItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(t, queue.Config{Limit: shed.Fixed(3), CriticalReserve: 1, MaxWait: time.Second})
		teach(s)
		held := hold(t, s, 1, queue.Ticket{})
		wide := acquire(t.Context(), s, queue.Ticket{Level: priority.Critical, Slots: 10})
		time.Sleep(time.Millisecond)
		narrow := acquire(t.Context(), s, queue.Ticket{})
		synctest.Wait()
		checkWaiting(t, s, 2) // two slots are free, and stay so
		s.Release(held[0], shed.Served)
		a := <-wide
		if n := s.Stats().InFlight; a.err != nil || n != 3 {
			t.Fatalf("%v, %d slots taken", a.err, n)
		}
		checkWaiting(t, s, 1)
		s.Release(a.Grant, shed.Served)
		b := <-narrow
		if n := s.Stats().InFlight; b.err != nil || n != 1 {
			t.Fatalf("%v, %d slots taken", b.err, n)
		}
		if _, err := s.TryAcquire(time.Now(), queue.Ticket{Slots: 2}); err == nil {
			t.Fatal("two more than the one that the reserve leaves")
		}
		s.Release(b.Grant, shed.Served)
		g, err := s.TryAcquire(time.Now(), queue.Ticket{Slots: 5})
		if err != nil || s.Stats().InFlight != 2 {
			t.Fatalf("%v, %d slots taken, want all but the reserve", err, s.Stats().InFlight)
		}
		s.Release(g, shed.Served)
	})
}

// The waiter that holds slots back leaves: those behind it go at once.
func TestAWideWaiterThatLeavesFreesWhatItHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(t, queue.Config{Limit: shed.Fixed(4), MaxWait: time.Second})
		teach(s)
		hold(t, s, 2, queue.Ticket{})
		time.Sleep(time.Millisecond)
		wide := acquire(t.Context(), s, queue.Ticket{Caller: "wide", Slots: 4, MaxWait: 100 * time.Millisecond})
		synctest.Wait()
		narrow := acquire(t.Context(), s, queue.Ticket{Caller: "narrow"})
		synctest.Wait()
		checkWaiting(t, s, 2)
		if a := <-wide; a.err != shed.WaitedTooLong {
			t.Fatal(a.err)
		}
		if a := <-narrow; a.err != nil || a.after != 100*time.Millisecond {
			t.Fatalf("%v after %v", a.err, a.after)
		}
	})
}

// A lower level's wide request does not keep Critical out of its reserve.
func TestTheReserveStaysOpenWhileWideWorkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(t, queue.Config{Limit: shed.Fixed(4), CriticalReserve: 1, MaxWait: time.Second})
		hold(t, s, 1, queue.Ticket{})
		acquire(t.Context(), s, queue.Ticket{Slots: 3})
		synctest.Wait()
		if a := <-acquire(t.Context(), s, queue.Ticket{Level: priority.Critical}); a.err != nil || a.after != 0 {
			t.Fatalf("%v after %v", a.err, a.after)
		}
		s.Drain()
	})
}

// teach shows how long work takes, a second, so that none fits before other work ends.
func teach(s *queue.Slots) {
	g, _ := s.TryAcquire(time.Now(), queue.Ticket{})
	time.Sleep(time.Second)
	s.Release(g, shed.Served)
}
