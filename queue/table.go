package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
)

// table holds the work in flight. A grant names a row and which use of that row it
// is, so that a second release, or a release through a copy, finds nothing.
type table struct {
	rows []row
	free uint32 // first free row + 1; 0: none
	n    int
}

type row struct {
	admitted time.Time
	deadline time.Time
	turn     uint32 // odd while in use
	next     uint32 // next free row + 1
	level    priority.Level
	probe    bool
}

// take fills a row and returns the grant for it.
func (t *table) take(now time.Time, w *Waiter, waited time.Duration) Grant {
	if t.free == 0 {
		t.rows = append(t.rows, row{})
		t.free = uint32(len(t.rows))
	}
	i := t.free - 1
	r := &t.rows[i]
	t.free = r.next
	r.turn++
	r.admitted, r.deadline, r.level, r.probe = now, w.Deadline, w.Level, w.probe
	t.n++
	return Grant{Admitted: now, Waited: waited, index: i, turn: r.turn}
}

// held returns the grant's row while it is in flight, else nil.
func (t *table) held(g Grant) *row {
	if g.turn&1 == 0 || int64(g.index) >= int64(len(t.rows)) || t.rows[g.index].turn != g.turn {
		return nil
	}
	return &t.rows[g.index]
}

// release frees the grant's row, which is held.
func (t *table) release(g Grant) {
	r := &t.rows[g.index]
	r.turn++
	r.next = t.free
	t.free = g.index + 1
	t.n--
}
