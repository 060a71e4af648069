package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// drop is one piece of accepted work that will not be delivered.
type drop[T any] struct {
	value  T
	ticket Ticket
	reason shed.Reason
}

// admit makes place for a newcomer, adding who has to go to drops, or refuses it.
func (q *Queue[T]) admit(at time.Duration, t Ticket, drops []drop[T]) ([]drop[T], error) {
	switch {
	case q.over:
		return drops, shed.Draining
	case !t.Deadline.IsZero() && t.Deadline.Sub(q.epoch) <= at:
		return drops, shed.DeadlineUnmeetable
	case q.line.n < q.config.Bound:
		return drops, nil
	}
	w := q.yields(at, t)
	if w == nil {
		return drops, shed.QueueFull
	}
	return append(drops, q.drop(w, shed.Evicted)), nil
}

// yields returns who goes for a newcomer when the queue is full; nil: the newcomer.
func (q *Queue[T]) yields(at time.Duration, t Ticket) *Waiter {
	switch q.config.Full {
	case DropOldest:
		return q.line.all.oldest
	case DropLeastImportant:
		return q.line.last(at, t.Level.Index(), t.Tenant)
	default:
		return nil
	}
}

// expire drops all work whose time is over.
func (q *Queue[T]) expire(at time.Duration) (drops []drop[T]) {
	var needs [priority.Count]time.Duration
	for w := q.line.expired(at, &needs); w != nil; w = q.line.expired(at, &needs) {
		drops = append(drops, q.drop(w, w.Reason))
	}
	return drops
}

func (q *Queue[T]) drop(w *Waiter, r shed.Reason) drop[T] {
	q.line.remove(w)
	q.dropped++
	d := drop[T]{q.values[w.slot], w.Ticket, r}
	q.keep(w)
	return d
}

// report tells of what was dropped, without the lock.
func (q *Queue[T]) report(drops []drop[T]) {
	if q.config.OnDrop == nil {
		return
	}
	for _, d := range drops {
		q.config.OnDrop(d.value, d.ticket, d.reason)
	}
}

// signal lets one popper look again. One signal in store is enough, because whoever
// finds more work than it takes passes the signal on.
func (q *Queue[T]) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// setStay sets the instants of w, which joins at now.
func (q *Queue[T]) setStay(w *Waiter, now time.Time) {
	stay := never
	if q.config.MaxWait > 0 {
		stay = q.config.MaxWait
	}
	if w.MaxWait > 0 {
		stay = min(stay, w.MaxWait)
	}
	w.leave, w.due = after(w.joined, stay), never
	if !w.Deadline.IsZero() {
		remaining := w.Deadline.Sub(now)
		w.due = after(w.joined, remaining)
		stay = min(stay, remaining)
	}
	w.half = never
	if stay != never {
		w.half = after(w.joined, stay/2)
	}
}

func (q *Queue[T]) at(now time.Time) time.Duration {
	if q.epoch.IsZero() {
		q.epoch = now
	}
	return now.Sub(q.epoch)
}

// waiter returns one that is not in use; keep puts it back and forgets its value.
func (q *Queue[T]) waiter() *Waiter {
	w := q.idle
	if w == nil {
		var none T
		q.values = append(q.values, none)
		return &Waiter{slot: len(q.values) - 1}
	}
	q.idle, w.next = w.next, nil
	return w
}

func (q *Queue[T]) keep(w *Waiter) {
	var none T
	q.values[w.slot] = none
	w.Ticket = Ticket{}
	w.next, q.idle = q.idle, w
}
