package queue

import (
	"math"
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
	due      time.Duration // since the core's epoch; never: no deadline
	turn     uint32        // odd while in use
	next     uint32        // next free row + 1
	crowd    int32         // in flight with it when it was let in
	level    priority.Level
	probe    bool
	once     bool // see Slots.Once
}

// take files r and returns the id of this use of its row.
func (t *table) take(r *row) uint64 {
	if t.free == 0 {
		t.rows = append(t.rows, row{})
		t.free = uint32(len(t.rows))
	}
	i := t.free - 1
	to := &t.rows[i]
	t.free = to.next
	t.n++
	r.turn = to.turn + 1
	r.crowd = int32(min(t.n, math.MaxInt32))
	*to = *r
	return uint64(r.turn)<<32 | uint64(i)
}

// held returns the grant's row while it is in flight, else nil.
func (t *table) held(g Grant) *row {
	i, turn := uint32(g.id), uint32(g.id>>32)
	if turn&1 == 0 || uint64(i) >= uint64(len(t.rows)) || t.rows[i].turn != turn {
		return nil
	}
	return &t.rows[i]
}

// release frees the grant's row, which is held.
func (t *table) release(g Grant) {
	i := uint32(g.id)
	r := &t.rows[i]
	r.turn++
	r.next = t.free
	t.free = i + 1
	t.n--
}
