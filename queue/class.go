package queue

import "time"

// class is everybody of one level who waits: tenants in a ring that take equal
// turns, each with its own line.
type class struct {
	n        int
	bytes    int64
	tenants  map[string]*tenant
	first    *tenant // whose turn is next
	last     *tenant
	backlogs backlogs
	longest  heap[*tenant] // by who would be served last
	due      heap[*Waiter]
}

// tenant is one tenant's line within a class. It exists only while it has waiters.
type tenant struct {
	name           string
	n              int
	oldest, newest *Waiter
	prev, next     *tenant // in the ring
	turn           uint64  // grows along the ring
	pos            int     // in longest
}

func newClass() class {
	return class{
		tenants: make(map[string]*tenant),
		longest: heap[*tenant]{
			before: func(a, b *tenant) bool { return a.n > b.n || a.n == b.n && a.turn > b.turn },
			moved:  func(t *tenant, to int) { t.pos = to },
		},
		due: dueHeap(),
	}
}

// newestFirst reports whether the tenant's order has turned: once its head has
// waited half its longest stay, the old are likely to leave unserved whatever
// happens, and the young can still be served well.
func (t *tenant) newestFirst(at time.Duration) bool { return t.oldest.half <= at }

// head returns who of the tenant goes next.
func (t *tenant) head(at time.Duration) *Waiter {
	if t.newestFirst(at) {
		return t.newest
	}
	return t.oldest
}

// tail returns who of the tenant goes last.
func (t *tenant) tail(at time.Duration) *Waiter {
	if t.newestFirst(at) {
		return t.oldest
	}
	return t.newest
}

// backlog returns how many of the named tenant wait.
func (c *class) backlog(name string) int {
	if t := c.tenants[name]; t != nil {
		return t.n
	}
	return 0
}

// ahead returns how many of this class a newcomer of the named tenant has to let
// go first: no more of another tenant than its own would be with it.
func (c *class) ahead(name string) int {
	if c.n == 0 {
		return 0
	}
	return c.backlogs.sum(c.backlog(name) + 1)
}

// join puts w at the end of t's line; t is in the ring.
func (c *class) join(t *tenant, w *Waiter) {
	w.tenant = t
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
	c.backlogs.add(t.n, 1)
	c.longest.fix(t.pos)
	if w.due != never && !w.probe {
		c.due.push(w)
	}
}

// part takes w out of its tenant's line and reports whether the line is now empty.
func (c *class) part(w *Waiter) (empty bool) {
	t := w.tenant
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
	w.prev, w.next, w.tenant = nil, nil, nil
	c.backlogs.add(t.n, -1)
	t.n--
	c.n--
	c.bytes -= w.size
	if i := w.pos[byDue]; i >= 0 {
		c.due.remove(i)
	}
	if t.n > 0 {
		c.longest.fix(t.pos)
	}
	return t.n == 0
}

// enroll gives the tenant the last turn of the ring.
func (c *class) enroll(t *tenant, turn uint64) {
	t.turn = turn
	t.prev, t.next = c.last, nil
	if c.last != nil {
		c.last.next = t
	} else {
		c.first = t
	}
	c.last = t
}

// strike takes the tenant out of the ring.
func (c *class) strike(t *tenant) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		c.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		c.last = t.prev
	}
	t.prev, t.next = nil, nil
}
