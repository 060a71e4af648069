package queue

import (
	"context"
	"sync"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Queue is a bounded queue of work between the code that accepts it and the code
// that does it: an HTTP handler and its writer, say. It serves in the order of [Slots]
// (classes, callers in turns, newest first once the head has waited half its
// stay), evicts by that order or the oldest when it is full, and never delivers work
// whose deadline or stay is over. All methods are safe for concurrent use by any number
// of pushers and poppers. It starts no goroutine.
type Queue[T any] struct {
	config WorkConfig[T]
	more   chan struct{} // there may be work
	closed chan struct{}

	mu      sync.Mutex
	line    line
	values  []T // by Waiter.slot
	idle    spares
	epoch   time.Time
	over    bool
	dropped uint64
}

// NewQueue builds a queue. Errors name the field of the WorkConfig.
func NewQueue[T any](config WorkConfig[T]) (*Queue[T], error) {
	config, err := config.settled()
	if err != nil {
		return nil, err
	}
	q := &Queue[T]{config: config, more: make(chan struct{}, 1), closed: make(chan struct{})}
	q.line.init()
	return q, nil
}

// Push hands work over; now is the caller's current time. It never blocks. The
// error is a [shed.Reason]: DeadlineUnmeetable when the deadline has passed, QueueFull when
// there was no place, Capacity for a ticket that does not wait, Draining when the
// queue is closed. The ticket's Bytes are carried, not counted.
func (q *Queue[T]) Push(now time.Time, v T, t Ticket) error {
	if t.MaxWait < 0 {
		return shed.Capacity
	}
	q.mu.Lock()
	at := q.at(now)
	drops := q.expire(at)
	drops, err := q.admit(at, t, drops)
	if err == nil {
		w := q.waiter()
		w.Ticket, w.joined, w.est = t, at, unitTime
		q.setStay(w, now)
		q.values[w.slot] = v
		q.line.add(w, at)
	}
	q.mu.Unlock()
	q.report(drops)
	if err == nil {
		q.signal()
	}
	return err
}

// Pop takes out the work that goes next. It blocks until there is some, ctx ends
// (its error is returned), or the queue is closed and empty (Draining).
func (q *Queue[T]) Pop(ctx context.Context) (T, Ticket, error) {
	for {
		if err := ctx.Err(); err != nil {
			var none T
			return none, Ticket{}, err
		}
		v, t, ok, over := q.pop(time.Now())
		switch {
		case ok:
			return v, t, nil
		case over:
			return v, t, shed.Draining
		}
		select {
		case <-q.more:
		case <-q.closed:
		case <-ctx.Done():
		}
	}
}

// TryPop takes out the work that goes next at now, without blocking, and reports
// whether there was any.
func (q *Queue[T]) TryPop(now time.Time) (v T, t Ticket, ok bool) {
	v, t, ok, _ = q.pop(now)
	return v, t, ok
}

// pop is TryPop; over: the queue is closed.
func (q *Queue[T]) pop(now time.Time) (v T, t Ticket, ok, over bool) {
	q.mu.Lock()
	at := q.at(now)
	drops := q.expire(at)
	k := q.line.next(at, false)
	if w := k.w; w != nil {
		p := q.line.take(at, k, 1)
		q.line.end(&p, at+p.est) // how long it takes is not known: equal turns
		v, t, ok = q.values[w.slot], w.Ticket, true
		q.keep(w)
	}
	left, over := q.line.n, q.over
	q.mu.Unlock()
	q.report(drops)
	if left > 0 {
		q.signal()
	}
	return v, t, ok, over
}

// Len returns how much work waits, expired work that no call has met included.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.line.n
}

// Waiting returns how much work waits, by level.
func (q *Queue[T]) Waiting() (n [priority.Count]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range n {
		n[i] = q.line.classes[i].n
	}
	return n
}

// Oldest returns how long, at now, the oldest work has waited; zero when empty.
func (q *Queue[T]) Oldest(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.line.all.oldest; w != nil {
		return max(q.at(now)-w.joined, 0)
	}
	return 0
}

// Dropped returns how much accepted work was not delivered.
func (q *Queue[T]) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Close refuses further work. What waits is still delivered, after which Pop
// returns Draining. A second call does nothing.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.over {
		q.over = true
		close(q.closed)
	}
}

// drop is one piece of accepted work that will not be delivered.
type drop[T any] struct {
	value  T
	ticket Ticket
	reason shed.Reason
}

// admit makes place for a newcomer, adding what has to go to drops, or refuses it.
func (q *Queue[T]) admit(at time.Duration, t Ticket, drops []drop[T]) ([]drop[T], error) {
	switch {
	case q.over:
		return drops, shed.Draining
	case !t.Deadline.IsZero() && t.Deadline.Sub(q.epoch) <= at:
		return drops, shed.DeadlineUnmeetable
	case q.line.n < q.config.MaxWaiting:
		return drops, nil
	}
	w := q.yields(at, t)
	if w == nil {
		return drops, shed.QueueFull
	}
	return append(drops, q.drop(w, shed.Evicted)), nil
}

// yields returns what goes for a newcomer when the queue is full; nil: the newcomer.
func (q *Queue[T]) yields(at time.Duration, t Ticket) *Waiter {
	if q.config.DropOldest {
		return q.line.all.oldest
	}
	w := &Waiter{Ticket: t, est: unitTime}
	q.line.find(w)
	return q.line.last(at, w)
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

// signal lets one popper look again. One signal in store is enough, because a popper
// that leaves work behind passes the signal on.
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
	if w := q.idle.take(); w != nil {
		return w
	}
	var none T
	q.values = append(q.values, none)
	return &Waiter{slot: len(q.values) - 1}
}

func (q *Queue[T]) keep(w *Waiter) {
	var none T
	q.values[w.slot] = none
	q.idle.put(w)
}
