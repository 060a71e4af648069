package queue_test

import (
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// steady serves one slot's work, each of it taking so long, n times.
func (d *desk) steady(level priority.Level, service time.Duration, n int) {
	for range n {
		d.core.Release(d.now, d.held[0], shed.Ignored)
		w := &queue.Waiter{Ticket: queue.Ticket{Level: level}}
		if v, _ := d.core.Offer(d.now, w); v != entry.In {
			d.t.Fatalf("%v %v", v, w.Reason)
		}
		d.now = d.now.Add(service)
		d.core.Release(d.now, w.Grant, shed.Served)
		hold := &queue.Waiter{Ticket: queue.Ticket{Level: priority.Critical}}
		d.core.Offer(d.now, hold)
		d.held[0] = hold.Grant
	}
}

func TestThePredictedWaitCountsFairly(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1), MaxWaiting: 1000, MaxWait: 100 * time.Millisecond})
	d.steady(priority.Normal, 10*time.Millisecond, 200) // one slot every 10 ms: ten waits fit
	d.offer(repeat("n:loud%d", 40)...)
	if n := d.core.Stats(d.now).Waiting[priority.Normal.Index()]; n != 10 {
		t.Fatalf("%d of one caller wait, want the 10 that fit in MaxWait", n)
	}
	d.expect(d.offer("n:quiet1"), "+n:quiet1") // one of loud before it, ten of loud in all
	d.expect(d.offer("c:a"), "+c:a")
}

// As long as the service takes 90 ms and the deadline is 150 ms, nobody gets a slot
// with less than 90 ms left, however the waits fall.
func TestNobodyIsAdmittedWithLessThanTheMedianServiceTimeLeft(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(2), MaxWaiting: 1000})
	d.core.Release(d.now, d.held[1], shed.Ignored) // one stays free: how fast a queue drains is not known
	d.steady(priority.Normal, 90*time.Millisecond, 20)
	d.core.Offer(d.now, new(queue.Waiter))
	for i := range 200 {
		w := &queue.Waiter{Ticket: queue.Ticket{Deadline: d.now.Add(150 * time.Millisecond)}}
		d.core.Offer(d.now, w)
		d.now = d.now.Add(7 * time.Millisecond)
		if i%3 == 0 {
			d.core.Release(d.now, d.held[0], shed.Ignored)
		}
		for w := d.core.Next(d.now); w != nil; w = d.core.Next(d.now) {
			if left := w.Deadline.Sub(d.now); left < 90*time.Millisecond {
				t.Fatalf("admitted with %v left", left)
			}
			d.held[0] = w.Grant
		}
		for w := d.core.Expire(d.now); w != nil; w = d.core.Expire(d.now) {
			if w.Reason != shed.DeadlineUnmeetable || w.Deadline.Sub(d.now) < 83*time.Millisecond {
				t.Fatalf("left with %v, %v before its deadline", w.Reason, w.Deadline.Sub(d.now))
			}
		}
	}
	if n := d.core.Stats(d.now).Waited; n < 20 {
		t.Fatalf("only %d were admitted from the queue", n)
	}
}

// A service that was too slow for every deadline and has healed is found out, with
// no help from requests without a deadline.
func TestAnOldSlowEstimateDoesNotRefuseEverybodyForEver(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1)})
	d.steady(priority.Normal, 2*time.Second, 20)
	d.core.Release(d.now, d.held[0], shed.Ignored)
	served, refused := 0, 0
	for range 100 { // one request every 10 ms, 1 s to live, and the work takes 5 ms
		w := &queue.Waiter{Ticket: queue.Ticket{Deadline: d.now.Add(time.Second)}}
		if v, _ := d.core.Offer(d.now, w); v == entry.In {
			d.core.Release(d.now.Add(5*time.Millisecond), w.Grant, shed.Served)
			served++
		} else {
			refused++
		}
		d.now = d.now.Add(10 * time.Millisecond)
	}
	if served < 95 {
		t.Fatalf("%d served, %d refused", served, refused)
	}
}

// Where the estimate is right, trying it out costs one slot, not all of them.
func TestARightSlowEstimateIsTriedByOneAtATime(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(10)})
	d.steady(priority.Normal, 2*time.Second, 20)
	for _, g := range d.held {
		d.core.Release(d.now, g, shed.Ignored)
	}
	type work struct {
		queue.Grant
		end time.Time
	}
	var flying []work
	most := 0
	for range 1000 {
		w := &queue.Waiter{Ticket: queue.Ticket{Deadline: d.now.Add(time.Second)}}
		if v, _ := d.core.Offer(d.now, w); v == entry.In {
			flying = append(flying, work{w.Grant, d.now.Add(2 * time.Second)})
		}
		most = max(most, len(flying))
		for len(flying) > 0 && !flying[0].end.After(d.now) {
			d.core.Release(d.now, flying[0].Grant, shed.TimedOut)
			flying = flying[1:]
		}
		d.now = d.now.Add(10 * time.Millisecond)
	}
	if most != 1 {
		t.Fatalf("%d hopeless requests in flight at once", most)
	}
}

// Long reports and short searches share a level: the reports' time must not refuse
// the searches for good.
func TestAMixOfLongAndShortWorkServesTheShort(t *testing.T) {
	d := newDesk(t, queue.Config{Limit: shed.Fixed(1)})
	d.steady(priority.Normal, 5*time.Second, 20)
	d.core.Release(d.now, d.held[0], shed.Ignored)
	served := 0
	for i := range 100 {
		w := &queue.Waiter{}
		took := 5 * time.Second
		if i%5 > 2 { // two in five
			w.Deadline, took = d.now.Add(time.Second), 10*time.Millisecond
		}
		if v, _ := d.core.Offer(d.now, w); v == entry.In {
			d.now = d.now.Add(took)
			d.core.Release(d.now, w.Grant, shed.Served)
			if took < time.Second {
				served++
			}
		}
	}
	if served != 40 {
		t.Fatalf("%d of 40 short ones served", served)
	}
}
