package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
)

// line is the order of all that waits, and nothing else: what goes next, what would
// go last, what has to leave. Instants are durations since an epoch of the program's.
// Every operation is O(log n).
type line struct {
	classes [priority.Count]class
	contest contest
	times   times
	all     list
	n       int
	bytes   int64
	leaves  heap[*Waiter]
	idle    *caller // callers to be used again, linked by next
}

func (l *line) init() {
	l.leaves = waiterHeap(byLeave)
	l.contest = newContest()
	for i := range l.classes {
		l.classes[i] = newClass()
	}
}

// add puts w in line. Its instants are set.
func (l *line) add(w *Waiter, at time.Duration) {
	c, t := &l.classes[w.Level.Index()], w.caller
	if t == nil {
		t = c.callers[w.name()]
	}
	if t == nil {
		l.forget(c, owingChecks)
		t = l.newCaller(c, w)
	}
	w.pos = [heaps]int32{-1, -1}
	c.join(t, w, at)
	l.all.push(w)
	if w.leave != never {
		l.leaves.push(w.leave, w)
	}
	l.n++
	l.bytes += w.size
	w.state = waiting
}

// remove takes w out of line, wherever it stands.
func (l *line) remove(w *Waiter) {
	c, t := &l.classes[w.Level.Index()], w.caller
	l.part(c, w)
	if t.n > 0 {
		c.rankEnd(t)
	} else {
		l.rest(c, t)
	}
}

func (l *line) part(c *class, w *Waiter) {
	l.all.remove(w)
	if i := w.pos[byLeave]; i >= 0 {
		l.leaves.remove(int(i))
	}
	l.n--
	l.bytes -= w.size
	w.state = outside
	c.part(w)
}

// turn is a waiter that may go now, nil: none, and the side that is charged.
type turn struct {
	w    *Waiter
	side *share
}

// next returns the waiter that goes next; none when nothing waits, or nothing of the
// top class when only that may go.
func (l *line) next(at time.Duration, topOnly bool) turn {
	c, side := l.turnOf(at, topOnly)
	if c == nil {
		return turn{}
	}
	return turn{c.next(at).head(at), side}
}

// take takes a waiter out that gets so many slots, and charges it; the piece has to
// come back to end.
func (l *line) take(at time.Duration, k turn, slots int) piece {
	t := k.w.caller
	p := piece{caller: t, side: k.side, start: at, est: l.estimate(k.w), base: l.times.route(k.w.Route), slots: int32(slots)}
	t.class.begin(&p)
	if k.side != nil {
		k.side.begin(&p)
	}
	l.part(t.class, k.w)
	if t.n > 0 {
		t.class.rank(t, at)
	}
	return p
}

// turnOf returns the class to be served now, and the side to charge while classes
// contend.
func (l *line) turnOf(at time.Duration, topOnly bool) (*class, *share) {
	lo, hi := l.lowest(), l.highest()
	switch {
	case l.n == 0, topOnly && hi < priority.Count-1:
		return nil, nil
	case lo == hi, topOnly:
		l.contest.open = l.contest.open && lo != hi
		return &l.classes[hi], nil
	}
	low := &l.classes[lo]
	var est time.Duration
	if !l.contest.open {
		est = l.estimate(low.next(at).head(at))
	}
	side := l.contest.turn(at, est)
	if side == &l.contest.low {
		return low, side
	}
	return &l.classes[hi], side
}

// estimate returns for how long w's work will hold each slot.
func (l *line) estimate(w *Waiter) time.Duration {
	return l.times.of(&w.Ticket, w.caller)
}

// find looks for the caller of newcomer w, which is as good as known until one leaves.
func (l *line) find(w *Waiter) { w.caller = l.classes[w.Level.Index()].callers[w.name()] }

// measure sets how long w's work will hold its slots, by itself and beside the mean.
func (l *line) measure(w *Waiter) {
	w.est = l.estimate(w)
	w.parts = int64(float64(w.work()) / float64(l.times.all.get()) * partUnit)
}

// outlast makes a running piece count with the time it takes from now on.
func (l *line) outlast(p *piece) {
	p.late = true
	if p.caller != nil {
		p.caller.outlast(p)
	}
	if p.side != nil {
		p.side.outlast(p)
	}
}

// end settles a piece with the time it took.
func (l *line) end(p *piece, at time.Duration) {
	if p.side != nil {
		p.side.end(p, at)
	}
	if t := p.caller; t != nil {
		t.class.end(p, at)
		l.rest(t.class, t)
	}
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

// ahead returns how much slot time would be served before a newcomer, counted fairly,
// in mean pieces: X pieces end per second, and what waits is large or small beside
// those. What the mean is does not matter, as long as all gets slower alike.
func (l *line) ahead(at time.Duration, w *Waiter) int {
	i := w.Level.Index()
	parts := l.classes[i].ahead(at, w, l.times.all.get())
	for i++; i < priority.Count; i++ {
		parts += l.classes[i].parts
	}
	return pieces(parts)
}

// peers is the part of ahead that is of w's own class.
func (l *line) peers(at time.Duration, w *Waiter) int {
	return pieces(l.classes[w.Level.Index()].ahead(at, w, l.times.all.get()))
}

// upTo returns how many wait of the class with index i and those below, and
// whether any of a class above does.
func (l *line) upTo(i int) (n int, above bool) {
	for j := 0; j <= i; j++ {
		n += l.classes[j].n
	}
	return n, n < l.n
}

// newCaller makes a caller of w's name known to c.
func (l *line) newCaller(c *class, w *Waiter) *caller {
	t := l.idle
	if t == nil {
		t = new(caller)
	} else {
		l.idle = t.next
	}
	*t = caller{class: c, name: w.name(), weight: w.weight()}
	t.per = 1 / float64(t.weight)
	c.callers[t.name] = t
	return t
}

// rest lets go of t if nothing of it waits or runs, and of what all owe once nothing
// of the class does: fairness is among those that contend.
func (l *line) rest(c *class, t *caller) {
	if t.n == 0 && t.running == 0 {
		if t.settled > c.present {
			c.owing.push(t)
		} else {
			l.drop(t)
		}
	}
	if c.n == 0 && c.charged == 0 {
		for c.owing.first != nil {
			t := c.owing.first
			c.owing.remove(t)
			l.drop(t)
		}
		c.present = 0
	}
}

const (
	owingChecks = 2    // callers that owe, looked at for each new caller
	mostOwing   = 4096 // above that the oldest is forgiven
)

// forget drops callers that owe nothing more, of the next few.
func (l *line) forget(c *class, few int) {
	for ; few > 0 && c.owing.first != nil; few-- {
		t := c.owing.first
		c.owing.remove(t)
		if t.settled <= c.present || c.owing.n >= mostOwing {
			l.drop(t)
		} else {
			c.owing.push(t)
		}
	}
}

func (l *line) drop(t *caller) {
	delete(t.class.callers, t.name)
	*t = caller{next: l.idle}
	l.idle = t
}
