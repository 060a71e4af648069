package queue

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// flight is the work in flight. A grant names a row and which use of that row it
// is, so that a second release, or a release through a copy, finds nothing.
type flight struct {
	rows     []row
	free     uint32 // first free row + 1; 0: none
	n        int
	critical int          // of n, at the top level
	full     bool         // a newcomer below the top level would have to wait
	since    time.Time    // since when it is full with nothing coming free
	outlast  heap[uint32] // rows of charged work by when it outlasts its estimate
}

type row struct {
	admitted time.Time
	due      time.Duration // since the core's epoch; never: no deadline
	turn     uint32        // odd while in use
	next     uint32        // next free row + 1
	crowd    int32         // in flight with it when it was let in
	level    priority.Level
	probe    bool
	once     bool  // see Slots.Once
	route    int32 // as in Ticket
	pos      int32 // in outlast; -1: nowhere
	piece    piece // what is charged
}

func (f *flight) init() {
	f.outlast = heap[uint32]{
		before: func(a, b uint32) bool { return f.rows[a].piece.outlasts() < f.rows[b].piece.outlasts() },
		moved:  func(i uint32, to int) { f.rows[i].pos = int32(to) },
	}
}

// take files r and returns the id of this use of its row.
func (f *flight) take(r *row) uint64 {
	if f.free == 0 {
		f.rows = append(f.rows, row{})
		f.free = uint32(len(f.rows))
	}
	i := f.free - 1
	to := &f.rows[i]
	f.free = to.next
	f.n++
	if r.level >= priority.Critical {
		f.critical++
	}
	r.turn = to.turn + 1
	r.crowd, r.pos = int32(min(f.n, math.MaxInt32)), -1
	*to = *r
	if r.piece.caller != nil {
		f.outlast.push(i)
	}
	return uint64(r.turn)<<32 | uint64(i)
}

// held returns the grant's row while it is in flight, else nil.
func (f *flight) held(g Grant) *row {
	i, turn := uint32(g.id), uint32(g.id>>32)
	if turn&1 == 0 || uint64(i) >= uint64(len(f.rows)) || f.rows[i].turn != turn {
		return nil
	}
	return &f.rows[i]
}

// release frees the grant's row, which is held.
func (f *flight) release(g Grant) {
	i := uint32(g.id)
	r := &f.rows[i]
	if r.pos >= 0 {
		f.outlast.remove(int(r.pos))
	}
	r.piece = piece{}
	r.turn++
	r.next = f.free
	f.free = i + 1
	f.n--
	if r.level >= priority.Critical {
		f.critical--
	}
}

// outlasted returns charged work that has outlasted its estimate, each only once, or
// nil.
func (f *flight) outlasted(at time.Duration) *piece {
	if f.outlast.len() == 0 {
		return nil
	}
	p := &f.rows[f.outlast.items[0]].piece
	if p.outlasts() > at {
		return nil
	}
	f.outlast.remove(0)
	return p
}

// othersFree reports whether a slot is free for the levels below Critical, which
// may use so many of the limit.
func (f *flight) othersFree(limit, others int) bool {
	return f.n < limit && f.n-f.critical < others
}

// note keeps since when everything is taken; freed: a slot has just come free.
func (f *flight) note(now time.Time, full, freed bool) {
	if full && (freed || !f.full) {
		f.since = now
	}
	f.full = full
}

// silence returns for how long nothing has come free.
func (f *flight) silence(now time.Time) time.Duration {
	if !f.full {
		return 0
	}
	return now.Sub(f.since)
}
