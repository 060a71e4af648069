package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Queue is a bounded queue of work between those who accept it and those who do
// it: an HTTP handler and its writer, say. It serves in the order of [Slots]
// (classes, equal turns of tenants, newest first once the head has waited half its
// stay), has an explicit policy for when it is full, and never delivers work whose
// deadline or stay is over. All methods are safe for concurrent use by any number
// of pushers and poppers. It starts no goroutine.
type Queue[T any] struct {
	config WorkConfig[T]
	more   chan struct{} // somebody may find work
	closed chan struct{}

	mu      sync.Mutex
	line    line
	values  []T // by Waiter.slot
	idle    *Waiter
	epoch   time.Time
	over    bool
	dropped uint64
}

// WorkConfig is everything a [Queue] is told.
type WorkConfig[T any] struct {
	// Bound is how much work may wait. Zero: 1024. Negative: an error.
	Bound int
	// Full says what happens to work that arrives when the queue is at its bound.
	Full FullPolicy
	// MaxWait is the longest stay of work whose ticket names none or a longer one.
	// Zero: no limit. Negative: an error.
	MaxWait time.Duration
	// OnDrop is told of work that was accepted and will not be delivered: Evicted by
	// the full policy, Hopeless or WaitedTooLong. It is called without any lock held,
	// by whichever Push, Pop or Close met it. Nil: nobody is told; Dropped counts.
	OnDrop func(T, Ticket, shed.Reason)
}

// FullPolicy says who goes when a [Queue] is full.
type FullPolicy uint8

// The policies.
const (
	RejectNew          FullPolicy = iota // the newcomer is refused with QueueFull
	DropOldest                           // the work that came first is evicted, whatever its class
	DropLeastImportant                   // whoever the order would serve last goes, newcomer included
)

const defaultWorkBound = 1024

// ErrClosed is what Pop returns once a closed queue is empty.
var ErrClosed = errors.New("queue: closed")

// NewQueue builds a queue. Errors name the field of the WorkConfig.
func NewQueue[T any](config WorkConfig[T]) (*Queue[T], error) {
	switch {
	case config.Bound < 0:
		return nil, fmt.Errorf("queue: Bound = %d: must not be negative", config.Bound)
	case config.MaxWait < 0:
		return nil, fmt.Errorf("queue: MaxWait = %v: must not be negative", config.MaxWait)
	case config.Full > DropLeastImportant:
		return nil, fmt.Errorf("queue: Full = %d: not a policy", config.Full)
	}
	if config.Bound == 0 {
		config.Bound = defaultWorkBound
	}
	q := &Queue[T]{config: config, more: make(chan struct{}, 1), closed: make(chan struct{})}
	q.line.init()
	return q, nil
}

// Push hands work over; now is the caller's current time. It never blocks. The
// error is a [shed.Reason]: Hopeless when the deadline has passed, QueueFull when
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
		w.Ticket, w.joined = t, at
		q.setStay(w, now)
		q.values[w.slot] = v
		q.line.add(w)
	}
	q.mu.Unlock()
	q.report(drops)
	if err == nil {
		q.signal()
	}
	return err
}

// Pop takes out the work that goes next. It blocks until there is some, ctx ends
// (its error is returned), or the queue is closed and empty (ErrClosed).
func (q *Queue[T]) Pop(ctx context.Context) (T, Ticket, error) {
	for {
		if err := ctx.Err(); err != nil {
			var none T
			return none, Ticket{}, err
		}
		v, t, err := q.TryPop(time.Now())
		if err != ErrEmpty {
			return v, t, err
		}
		select {
		case <-q.more:
		case <-q.closed:
		case <-ctx.Done():
		}
	}
}

// ErrEmpty is what TryPop returns from an open queue that holds nothing.
var ErrEmpty = errors.New("queue: empty")

// TryPop takes out the work that goes next at now, without blocking. An empty queue
// is an error: ErrClosed once it is closed.
func (q *Queue[T]) TryPop(now time.Time) (v T, t Ticket, err error) {
	q.mu.Lock()
	at := q.at(now)
	drops := q.expire(at)
	w := q.line.pop(at, false)
	switch {
	case w != nil:
		v, t = q.values[w.slot], w.Ticket
		q.keep(w)
	case q.over:
		err = ErrClosed
	default:
		err = ErrEmpty
	}
	left := q.line.n
	q.mu.Unlock()
	q.report(drops)
	if left > 0 {
		q.signal()
	}
	return v, t, err
}

// Len returns how much work waits, expired work that nobody has met included.
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
// returns ErrClosed. A second call does nothing.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.over {
		q.over = true
		close(q.closed)
	}
}
