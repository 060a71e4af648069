package queue

import "time"

// class is everybody of one level who waits: callers in a ring that take equal
// turns, each with its own line.
type class struct {
	n        int
	bytes    int64
	callers  map[string]*caller
	first    *caller // whose turn is next
	last     *caller
	backlogs backlogs
	longest  heap[*caller] // by who would be served last
	due      heap[*Waiter]
}

// caller is one caller's line within a class. It exists only while it has waiters.
type caller struct {
	name           string
	n              int
	oldest, newest *Waiter
	prev, next     *caller // in the ring
	turn           uint64  // grows along the ring
	pos            int     // in longest
}

func newClass() class {
	return class{
		callers: make(map[string]*caller),
		longest: heap[*caller]{
			before: func(a, b *caller) bool { return a.n > b.n || a.n == b.n && a.turn > b.turn },
			moved:  func(t *caller, to int) { t.pos = to },
		},
		due: dueHeap(),
	}
}

// newestFirst reports whether the caller's order has turned: once its head has
// waited half its longest stay, the old are likely to leave unserved whatever
// happens, and the young can still be served well.
func (t *caller) newestFirst(at time.Duration) bool { return t.oldest.half <= at }

// head returns who of the caller goes next.
func (t *caller) head(at time.Duration) *Waiter {
	if t.newestFirst(at) {
		return t.newest
	}
	return t.oldest
}

// tail returns who of the caller goes last.
func (t *caller) tail(at time.Duration) *Waiter {
	if t.newestFirst(at) {
		return t.oldest
	}
	return t.newest
}

// backlog returns how many of the named caller wait.
func (c *class) backlog(name string) int {
	if t := c.callers[name]; t != nil {
		return t.n
	}
	return 0
}

// ahead returns how many of this class a newcomer of the named caller has to let
// go first: no more of another caller than its own would be with it.
func (c *class) ahead(name string) int {
	if c.n == 0 {
		return 0
	}
	return c.backlogs.sum(c.backlog(name) + 1)
}

// join puts w at the end of t's line; t is in the ring.
func (c *class) join(t *caller, w *Waiter) {
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
	c.backlogs.add(t.n, 1)
	c.longest.fix(t.pos)
	if w.due != never && !w.probe {
		c.due.push(w)
	}
}

// part takes w out of its caller's line and reports whether the line is now empty.
func (c *class) part(w *Waiter) (empty bool) {
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

// enroll gives the caller the last turn of the ring.
func (c *class) enroll(t *caller, turn uint64) {
	t.turn = turn
	t.prev, t.next = c.last, nil
	if c.last != nil {
		c.last.next = t
	} else {
		c.first = t
	}
	c.last = t
}

// strike takes the caller out of the ring.
func (c *class) strike(t *caller) {
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

// backlogs knows, of the callers of one class, how many have at least j waiters,
// for every j: a Fenwick tree over j. The sum up to k is Σ min(backlog, k), since
// a caller is counted once for each j up to its backlog. All in O(log longest).
type backlogs struct {
	tree []int // tree[0] unused; the length less one is a power of two
}

// add counts one caller more (or less, d = -1) that has at least j waiters.
func (b *backlogs) add(j, d int) {
	for j >= len(b.tree) {
		b.grow()
	}
	for ; j < len(b.tree); j += j & -j {
		b.tree[j] += d
	}
}

// sum returns Σ min(backlog, k) over all callers.
func (b *backlogs) sum(k int) int {
	n := 0
	for k = min(k, len(b.tree)-1); k > 0; k -= k & -k {
		n += b.tree[k]
	}
	return n
}

// grow doubles the tree. Its last node covers everything, so the new last node
// starts with the same sum and the nodes between are empty.
func (b *backlogs) grow() {
	if len(b.tree) == 0 {
		b.tree = make([]int, 64+1)
		return
	}
	top := len(b.tree) - 1
	bigger := make([]int, 2*top+1)
	copy(bigger, b.tree)
	bigger[2*top] = b.tree[top]
	b.tree = bigger
}
