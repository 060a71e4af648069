package queue

import "time"

// class is all work of one level that waits, by caller. The caller that has had
// least goes next.
type class struct {
	n       int
	bytes   int64
	parts   int64 // slot time of all that waits, in parts of a mean piece
	charged int   // pieces in flight that came from here
	callers map[name]*caller
	present float64 // virtual time: what the latest dispatch found
	turn    uint64  // the latest one given
	order   ranks   // waiting callers by their share
	ends    ranks   // the same by when their last waiter would end, latest first
	spans   spans
	owing   callers // that neither wait nor run, and are ahead of the present
	due     heap[*Waiter]
}

// caller is one caller's line within a class, and its share of the slots. It exists
// while it has waiters, work in flight that counts, or had more than the others.
type caller struct {
	share
	class          *class
	name           name
	n              int
	work           time.Duration // estimated slot time of its waiters
	parts          int64         // the same in parts of a mean piece
	weight         int
	running        int  // pieces in flight that count
	took           mean // of its work, while it is known
	gain           mean // by how much that was closer than the mean of the route
	oldest, newest *Waiter
	key            float64  // the share when it was last ranked
	turn           uint64   // breaks ties: the latest to come or be served is last
	came           uint64   // the same among those that would be served last: since when it waits
	pos            [2]int32 // in order and in ends
	owes           bool
	prev, next     *caller // in owing
}

func newClass() class {
	return class{
		callers: make(map[name]*caller),
		ends:    ranks{which: 1},
		due:     waiterHeap(byDue),
	}
}

// finish is the virtual time at which the last of the caller's waiters would end.
func (t *caller) finish() float64 { return t.key + float64(t.work)*t.per }

// newestFirst reports whether the caller's order has turned: once its head has
// waited half its longest stay, the old are likely to leave unserved whatever
// happens, and the young can still be served well.
func (t *caller) newestFirst(at time.Duration) bool { return t.oldest.half <= at }

// head returns the waiter of the caller that goes next.
func (t *caller) head(at time.Duration) *Waiter {
	if t.newestFirst(at) {
		return t.newest
	}
	return t.oldest
}

// tail returns the waiter of the caller that goes last.
func (t *caller) tail(at time.Duration) *Waiter {
	if t.newestFirst(at) {
		return t.oldest
	}
	return t.newest
}

// next returns the caller that goes next. A share that grows while work runs was
// ranked too low at most, so the first whose rank holds is the one.
func (c *class) next(at time.Duration) *caller {
	for {
		t := c.order.items[0].caller
		if t.late == 0 || t.at(at) <= t.key {
			return t
		}
		c.rank(t, at)
	}
}

// rank puts t, which waits, where its share belongs.
func (c *class) rank(t *caller, at time.Duration) {
	t.key = t.at(at)
	c.order.set(t, t.key, t.turn)
	c.rankEnd(t)
}

func (c *class) rankEnd(t *caller) { c.ends.set(t, -t.finish(), ^t.came) }

// start returns the virtual time at which a caller with work of the given ticket
// would have its turn: one piece behind the present, as though it had just been
// served, unless it has had more.
func (c *class) start(t *caller, at, est time.Duration, per float64) float64 {
	v := c.present + float64(est)*per
	if t == nil {
		return v
	}
	if t.n > 0 {
		return t.at(at)
	}
	return max(v, t.at(at))
}

// ahead returns the slot time that would be served before a newcomer of w's caller,
// in parts of the given mean piece, counted fairly: no more of another caller, by
// weight, than its own would have had with it.
func (c *class) ahead(at time.Duration, w *Waiter, mean time.Duration) int64 {
	if c.n == 0 {
		return 0
	}
	t, per := w.caller, 1/float64(w.weight())
	span := max(c.start(t, at, w.est, per)-c.present, float64(w.work())*per) / float64(mean) * partUnit
	if t != nil {
		span += float64(t.parts) * per
	}
	return c.spans.sum(int64(min(span, float64(never/2))))
}

// join puts w at the end of t's line.
func (c *class) join(t *caller, w *Waiter, at time.Duration) {
	if weight := w.weight(); weight != t.weight {
		c.weigh(t, at, weight)
	}
	if t.n == 0 {
		c.enter(t, w, at)
	}
	w.caller = t
	w.prev, w.next = t.newest, nil
	if t.newest != nil {
		t.newest.next = w
	} else {
		t.oldest = w
	}
	t.newest = w
	t.n++
	c.n++
	c.bytes += w.size
	c.grow(t, w, 1)
	if t.n == 1 {
		c.order.push(t, t.key, t.turn)
		c.ends.push(t, -t.finish(), ^t.came)
	} else {
		c.rankEnd(t)
	}
	if w.due != never && !w.probe {
		c.due.push(w.due, w)
	}
}

// enter gives t, which has no waiters, its place in the order.
func (c *class) enter(t *caller, w *Waiter, at time.Duration) {
	if t.owes {
		c.owing.remove(t)
	}
	t.lift(at, c.start(t, at, w.est, t.per))
	c.turn++
	t.turn, t.came, t.key = c.turn, c.turn, t.at(at)
}

// weigh gives t another weight from now on.
func (c *class) weigh(t *caller, at time.Duration, weight int) {
	c.spans.add(t.parts, t.weight, -1)
	t.share.weigh(at, weight)
	t.weight = weight
	c.spans.add(t.parts, t.weight, 1)
	if t.n > 0 {
		c.rank(t, at)
	}
}

// grow counts w among what t waits for, or with sign -1 out.
func (c *class) grow(t *caller, w *Waiter, sign int64) {
	c.spans.move(t.parts, t.parts+sign*w.parts, t.weight)
	t.work += time.Duration(sign) * w.work()
	t.parts += sign * w.parts
	c.parts += sign * w.parts
}

// part takes w out of its caller's line, and the caller out of the order with its
// last waiter. One that stays has to be ranked.
func (c *class) part(w *Waiter) {
	t := w.caller
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		t.oldest = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		t.newest = w.prev
	}
	w.prev, w.next, w.caller = nil, nil, nil
	t.n--
	c.n--
	c.bytes -= w.size
	c.grow(t, w, -1)
	if i := w.pos[byDue]; i >= 0 {
		c.due.remove(int(i))
	}
	if t.n == 0 {
		c.order.remove(t)
		c.ends.remove(t)
	}
}

// begin charges a piece that was dispatched to its caller.
func (c *class) begin(p *piece) {
	t := p.caller
	if c.order.items[0].caller == t { // else it fills a gap, and others have had less
		c.present = max(c.present, t.key)
	}
	t.begin(p)
	t.running++
	c.charged++
	c.turn++
	t.turn = c.turn
}

// end settles a piece that has ended.
func (c *class) end(p *piece, at time.Duration) {
	t := p.caller
	t.share.end(p, at)
	t.learn(at-p.start, p.base)
	t.running--
	c.charged--
	if t.n > 0 {
		c.rank(t, at)
	}
}

// callers is a list of callers, oldest first.
type callers struct {
	first, last *caller
	n           int
}

func (l *callers) push(t *caller) {
	t.owes = true
	t.prev, t.next = l.last, nil
	if l.last != nil {
		l.last.next = t
	} else {
		l.first = t
	}
	l.last = t
	l.n++
}

func (l *callers) remove(t *caller) {
	t.owes = false
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		l.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.last = t.prev
	}
	t.prev, t.next = nil, nil
	l.n--
}
