package outbound

import (
	"time"

	"github.com/headgate-go/headgate/priority"
)

// line holds the calls of one operation that wait for their turn: the highest level
// first, within a level first come, first served. It is guarded by its operation's
// lock.
type line struct {
	lanes [priority.Count]lane
	n     int
}

// lane is a linked list, so that a call that gives up leaves in constant time.
type lane struct {
	head, tail *waiter
	n          int
}

// waiter is one call in line.
type waiter struct {
	level      int
	until      time.Time // when it stops waiting: its deadline, or its longest wait
	ready      chan struct{}
	pass       Pass
	err        error
	done       bool // granted or refused; out of the line
	next, prev *waiter
}

func (l *line) push(w *waiter) {
	q := &l.lanes[w.level]
	w.prev = q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.n++
	l.n++
}

// front returns whose turn is next, or nil.
func (l *line) front() *waiter {
	for i := priority.Count - 1; i >= 0; i-- {
		if w := l.lanes[i].head; w != nil {
			return w
		}
	}
	return nil
}

// ahead counts those who go before a newcomer of the given level.
func (l *line) ahead(level int) int {
	n := 0
	for i := level; i < priority.Count; i++ {
		n += l.lanes[i].n
	}
	return n
}

func (l *line) remove(w *waiter) {
	q := &l.lanes[w.level]
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
	q.n--
	l.n--
}

// settle takes w out of the line with its result and wakes it.
func (l *line) settle(w *waiter, p Pass, err error) {
	l.remove(w)
	w.pass, w.err, w.done = p, err, true
	close(w.ready)
}

// each calls f for everybody in the order they will be served; f may settle its
// argument.
func (l *line) each(f func(place int, w *waiter)) {
	place := 0
	for i := priority.Count - 1; i >= 0; i-- {
		for w := l.lanes[i].head; w != nil; {
			next := w.next
			f(place, w)
			place++
			w = next
		}
	}
}
