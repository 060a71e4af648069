package queue

import (
	"context"
	"errors"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Waiter is one piece of work in front of a [Core]. The program allocates it, fills
// in the Ticket and hands it to [Core.Offer]; from a verdict of Waits until the
// waiter comes back out (from Offer as evicted, Next, Expire or Cancel) the core
// owns it and the program must not touch it. After that it may be used again.
type Waiter struct {
	Ticket
	Grant  Grant       // the slot, once the waiter has one
	Reason shed.Reason // why it has none, once it was refused or had to leave

	// what other waiters' coming and going reads and writes, together
	caller       *caller
	older, newer *Waiter       // in the queue as a whole, by arrival
	prev, next   *Waiter       // in its caller's line, by arrival
	pos          [heaps]int32  // where it stands in the heaps of instants; -1: nowhere
	half         time.Duration // when half of its longest stay is over
	state        state
	probe        bool  // tries out whether the observed service time is right
	wide         int32 // slots it takes, as far as is known

	size   int64         // bytes it counts for
	est    time.Duration // of the time that its work will hold each slot
	parts  int64         // its slot time in parts of a mean piece
	joined time.Duration // since the core's epoch, as all instants
	leave  time.Duration // when its longest stay is over
	due    time.Duration // its deadline
	slot   int           // where a Queue keeps its value

	wake chan struct{} // how Slots tells it
}

// stays sets the instants of w, which joins at the given one with what the check knew.
// While its level gets what it asks for, its line gets shorter again, and the order need
// not turn for the sake of its longest stay. What has little of its deadline left is
// likely to be late even so.
func (w *Waiter) stays(at time.Duration, a *entry.Arrival, door entry.Check) {
	w.joined = at
	half := a.MaxWait / 2
	if door.Enough(a) {
		half = a.MaxWait
	}
	if a.Remaining != entry.Forever {
		half = min(half, (a.Remaining-door.Service)/2)
	}
	w.half = after(at, half)
	w.leave = after(at, a.MaxWait)
	if w.probe {
		w.leave = min(w.leave, w.due)
	}
}

// name is what a caller is known by.
type name struct{ space, caller string }

func (w *Waiter) name() name { return name{w.Space, w.Caller} }

// weight returns the weight of w's caller.
func (w *Waiter) weight() int { return min(max(w.Weight, 1), mostWeight) }

// work returns the slot time that w will take.
func (w *Waiter) work() time.Duration { return time.Duration(max(w.wide, 1)) * w.est }

const mostWeight = 1000

type state uint8

const (
	outside state = iota // the program's
	waiting              // in line
	leaving              // out of line, not handed back yet
)

// NoWait as a MaxWait means: go at once or be refused.
const NoWait = time.Duration(-1)

// Ticket is what a piece of work says about itself when it asks for a slot.
type Ticket struct {
	Level    priority.Level
	Caller   string        // whose turn it uses; the empty name is a caller like any other
	Space    string        // what kind of name Caller is: equal names of two kinds are two callers
	Deadline time.Time     // when its answer becomes worthless; zero: never
	MaxWait  time.Duration // longest stay in the queue; zero: the queue's own; NoWait: none; never longer than the queue's own
	AnswerBy time.Time     // when an answer can no longer be sent; bounds the stay, work as measured included, and nothing else; zero: never
	Bytes    int64         // announced size of its body, counted only when the queue has a bound in bytes
	Weight   int           // its caller's part of the slots, beside other callers of the level; zero: 1; at most 1000
	Slots    int           // how many slots it takes at once; zero: 1; more than the limit in force: the whole limit, alone
	Route    int           // what kind of work it is, an index of the program's own from 1 to 1024, for estimates of its time; zero: its level's
}

// Grant is a slot that was taken: a small value, valid until it is released. The
// zero Grant is no slot, and releasing it does nothing.
type Grant struct {
	Waited time.Duration // how long its owner stood in the queue
	at     time.Duration // when it was taken, since the core's epoch
	id     uint64        // which row, and which use of it; 0: none
}

// Held reports whether the grant was ever given a slot.
func (g Grant) Held() bool { return g.id != 0 }

// never is an instant that does not come.
const never = time.Duration(1<<63 - 1)

// after adds without overflow.
func after(at, d time.Duration) time.Duration {
	if d > never-at {
		return never
	}
	return at + d
}

// list is the queue as a whole, or those on their way out, by arrival.
type list struct{ oldest, newest *Waiter }

func (l *list) push(w *Waiter) {
	w.older, w.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = w
	} else {
		l.oldest = w
	}
	l.newest = w
}

func (l *list) remove(w *Waiter) {
	if w.older != nil {
		w.older.newer = w.newer
	} else {
		l.oldest = w.newer
	}
	if w.newer != nil {
		w.newer.older = w.older
	} else {
		l.newest = w.older
	}
	w.older, w.newer = nil, nil
}

// spares are waiters that are not in use, to be used again: at most most of them,
// zero for any number.
type spares struct {
	top  *Waiter // linked by next
	n    int
	most int
}

// take returns one, or nil when there is none.
func (s *spares) take() *Waiter {
	w := s.top
	if w != nil {
		s.top, w.next = w.next, nil
		s.n--
	}
	return w
}

// put keeps w and forgets its ticket.
func (s *spares) put(w *Waiter) {
	if s.most > 0 && s.n >= s.most {
		return
	}
	w.Ticket = Ticket{}
	w.next, s.top = s.top, w
	s.n++
}

// ended says why work whose context ended gets no slot.
func ended(err error) shed.Reason {
	if errors.Is(err, context.DeadlineExceeded) {
		return shed.DeadlineUnmeetable
	}
	return shed.ClientGone
}
