package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// line is the order of those who wait, and nothing else: who goes next, who would
// go last, who has to leave. Instants are durations since an epoch of the caller's.
// Every operation is O(log n).
type line struct {
	classes [priority.Count]class
	all     list
	n       int
	bytes   int64
	leaves  heap[*Waiter]
	turns   int     // dispatches since the lowest class had its turn
	turn    uint64  // the latest place in a ring
	idle    *caller // callers without waiters, to be used again, linked by next
}

// lowestTurn: see [shed.LowestTurn]. Low work is slowed down, not shut out.
const lowestTurn = shed.LowestTurn

func (l *line) init() {
	l.leaves = leaveHeap()
	for i := range l.classes {
		l.classes[i] = newClass()
	}
}

// add puts w in line. Its instants are set.
func (l *line) add(w *Waiter) {
	c := &l.classes[w.Level.Index()]
	t := c.callers[w.Caller]
	if t == nil {
		t = l.newCaller(w.Caller)
		c.callers[t.name] = t
		l.turn++
		c.enroll(t, l.turn)
		c.longest.push(t)
	}
	w.pos = [heaps]int{-1, -1}
	c.join(t, w)
	l.all.push(w)
	if w.leave != never {
		l.leaves.push(w)
	}
	l.n++
	l.bytes += w.size
	w.state = waiting
}

// remove takes w out of line, wherever it stands.
func (l *line) remove(w *Waiter) {
	c, t := &l.classes[w.Level.Index()], w.caller
	l.all.remove(w)
	if i := w.pos[byLeave]; i >= 0 {
		l.leaves.remove(i)
	}
	l.n--
	l.bytes -= w.size
	w.state = outside
	if c.part(w) {
		c.strike(t)
		c.longest.remove(t.pos)
		delete(c.callers, t.name)
		l.drop(t)
	}
}

// pop takes out who goes next; nil when nobody waits, or none of the top class
// when only that one may go.
func (l *line) pop(at time.Duration, topOnly bool) *Waiter {
	c := l.turnOf(topOnly)
	if c == nil {
		return nil
	}
	t := c.first
	w := t.head(at)
	many := t.n > 1
	l.remove(w)
	if many {
		c.strike(t)
		l.turn++
		c.enroll(t, l.turn)
		c.longest.fix(t.pos)
	}
	return w
}

// turnOf returns the class to be served now and counts the dispatch.
func (l *line) turnOf(topOnly bool) *class {
	lo, hi := l.lowest(), l.highest()
	if l.n == 0 || topOnly && hi < priority.Count-1 {
		return nil
	}
	if l.turns >= lowestTurn-1 && (!topOnly || lo == hi) {
		l.turns = 0
		return &l.classes[lo]
	}
	l.turns++
	return &l.classes[hi]
}

// lowest and highest return the index of the class at either end that has waiters;
// lowest is Count and highest -1 when there is none.
func (l *line) lowest() int {
	for i := range l.classes {
		if l.classes[i].n > 0 {
			return i
		}
	}
	return priority.Count
}

func (l *line) highest() int {
	for i := priority.Count - 1; i >= 0; i-- {
		if l.classes[i].n > 0 {
			return i
		}
	}
	return -1
}

// ahead returns how many would be served before a newcomer, counted fairly.
func (l *line) ahead(level priority.Level, caller string) int {
	i := level.Index()
	n := l.classes[i].ahead(caller)
	for i++; i < priority.Count; i++ {
		n += l.classes[i].n
	}
	return n
}

// upTo returns how many wait of the class with index i and those below, and
// whether anybody of a class above does.
func (l *line) upTo(i int) (n int, above bool) {
	for j := 0; j <= i; j++ {
		n += l.classes[j].n
	}
	return n, n < l.n
}

// last returns who yields to a newcomer because the order in force would serve it
// last: somebody of the lowest class waiting if that is below the newcomer's, else
// the last of the caller that yielder names. Nil: the newcomer is last itself.
func (l *line) last(at time.Duration, level int, name string) *Waiter {
	lo := l.lowest()
	if lo < level {
		return l.classes[lo].longest.items[0].tail(at)
	}
	if t, _ := l.yielder(at, level, name); t != nil {
		return t.tail(at)
	}
	return nil
}

// yielder returns the caller of this class that has to yield to a newcomer, and how
// many waiters it keeps whatever happens: the caller with most waiters if it has at
// least two more than the newcomer's (with one more, the two would only change
// places), else the newcomer's own once newest goes first. Nil: none.
func (l *line) yielder(at time.Duration, level int, name string) (t *caller, keep int) {
	c := &l.classes[level]
	if c.n == 0 {
		return nil, 0
	}
	own, most := c.callers[name], c.longest.items[0]
	if b := c.backlog(name); most != own && most.n >= b+2 {
		return most, b + 1
	}
	if own != nil && own.newestFirst(at) {
		return own, 0
	}
	return nil, 0
}

// expired returns somebody whose time is over, with the reason set, or nil. needs
// is the time that work of each class must have left.
func (l *line) expired(at time.Duration, needs *[priority.Count]time.Duration) *Waiter {
	for i := range l.classes {
		due := &l.classes[i].due
		if due.len() > 0 && due.items[0].due-needs[i] <= at {
			due.items[0].Reason = shed.DeadlineUnmeetable
			return due.items[0]
		}
	}
	if nextLeave(&l.leaves) <= at {
		w := l.leaves.items[0]
		w.Reason = shed.WaitedTooLong
		if w.due <= at {
			w.Reason = shed.DeadlineUnmeetable
		}
		return w
	}
	return nil
}

// nextExpiry returns the earliest instant at which expired finds somebody.
func (l *line) nextExpiry(needs *[priority.Count]time.Duration) time.Duration {
	at := nextLeave(&l.leaves)
	for i := range l.classes {
		if d := nextDue(&l.classes[i].due); d != never {
			at = min(at, d-needs[i])
		}
	}
	return at
}

func (l *line) newCaller(name string) *caller {
	t := l.idle
	if t == nil {
		t = new(caller)
	} else {
		l.idle = t.next
	}
	*t = caller{name: name}
	return t
}

func (l *line) drop(t *caller) {
	*t = caller{next: l.idle}
	l.idle = t
}
