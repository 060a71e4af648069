package queue

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// flight is the work in flight. A grant names a row and which use of that row it
// is, so that a second release, or a release through a copy, finds nothing.
type flight struct {
	rows     []row
	pieces   []piece      // what each row is charged, where it is
	free     uint32       // first free row + 1; 0: none
	n        int          // slots taken
	critical int          // of n, at the top level
	full     bool         // a newcomer below the top level would have to wait
	since    time.Time    // since when it is full with nothing coming free
	outlast  heap[uint32] // rows of charged work by when it outlasts its estimate
}

type row struct {
	admitted time.Time
	at       time.Duration // the same, since the core's epoch
	due      time.Duration // since the core's epoch; never: no deadline
	turn     uint32        // odd while in use
	next     uint32        // next free row + 1
	crowd    int32         // slots taken when it was let in, its own included
	slots    int32         // that it takes
	level    priority.Level
	probe    bool
	once     bool  // see Slots.Once
	route    int32 // as in Ticket
	pos      int32 // in outlast; -1: nowhere
	charged  bool  // there is a piece
}

func (f *flight) init() {
	f.outlast = heap[uint32]{moved: func(i uint32, to int32) { f.rows[i].pos = to }}
}

// take files r, and p unless it is nil, and returns the id of this use of its row.
func (f *flight) take(r *row, p *piece) uint64 {
	if f.free == 0 {
		f.rows, f.pieces = append(f.rows, row{}), append(f.pieces, piece{})
		f.free = uint32(len(f.rows))
	}
	i := f.free - 1
	to := &f.rows[i]
	f.free = to.next
	f.n += int(r.slots)
	if r.level >= priority.Critical {
		f.critical += int(r.slots)
	}
	r.turn = to.turn + 1
	r.crowd, r.pos = int32(min(f.n, math.MaxInt32)), -1
	*to = *r
	if p != nil {
		to.charged, f.pieces[i] = true, *p
		f.outlast.push(p.outlasts(), i)
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
	if r.charged {
		r.charged, f.pieces[i] = false, piece{}
	}
	r.turn++
	r.next = f.free
	f.free = i + 1
	f.n -= int(r.slots)
	if r.level >= priority.Critical {
		f.critical -= int(r.slots)
	}
}

// sample is what the law is told of the row's work.
func (r *row) sample(epoch time.Time, o shed.Outcome) shed.Sample {
	s := shed.Sample{Admitted: r.admitted, Outcome: o}
	if r.due != never {
		s.Deadline = epoch.Add(r.due)
	}
	return s
}

// piece returns what the grant's work, which is held, is charged; nil: nothing.
func (f *flight) piece(g Grant) *piece {
	if i := uint32(g.id); f.rows[i].charged {
		return &f.pieces[i]
	}
	return nil
}

// outlasted returns charged work that has outlasted its estimate, each only once, or
// nil.
func (f *flight) outlasted(at time.Duration) *piece {
	if f.outlast.len() == 0 || f.outlast.first() > at {
		return nil
	}
	p := &f.pieces[f.outlast.items[0].x]
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

// gap is what lies before a wide waiter whose turn has come while too few slots are
// free: those that are stay free for it, except for what is expected to end in time.
type gap struct {
	wide   *Waiter
	joined time.Duration // of wide: waiters are used again
	since  time.Duration
	ends   []slotEnd // used again
}

type slotEnd struct {
	at    time.Duration
	slots int
}

// before returns the wide waiter whose turn has come, or nil.
func (g *gap) before() *Waiter {
	if w := g.wide; w != nil && w.state == waiting && w.joined == g.joined {
		return w
	}
	g.wide = nil
	return nil
}

// open keeps since when it is w's turn.
func (g *gap) open(w *Waiter, at time.Duration) {
	if g.before() != w {
		g.wide, g.joined, g.since = w, w.joined, at
	}
}

// until returns when need of the given slots are expected to be free of the work that
// held them when the turn came. Work that has outlasted its estimate is
// expected to be late by as much again.
func (g *gap) until(at time.Duration, f *flight, t *times, slots, need int, critical bool) time.Duration {
	g.ends = g.ends[:0]
	for i := range f.rows {
		r := &f.rows[i]
		if r.turn&1 == 0 || r.at > g.since || !critical && r.level >= priority.Critical {
			continue
		}
		slots -= int(r.slots)
		est := f.pieces[i].est
		if !r.charged {
			est = t.of(&Ticket{Level: r.level, Route: int(r.route)}, nil)
		}
		end := after(r.at, est)
		if end < at {
			end = after(at, at-end)
		}
		g.ends = append(g.ends, slotEnd{end, int(r.slots)})
	}
	slices.SortFunc(g.ends, func(a, b slotEnd) int { return cmp.Compare(a.at, b.at) })
	until := at
	for _, e := range g.ends {
		if slots >= need {
			break
		}
		slots, until = slots+e.slots, e.at
	}
	return until
}

// space returns what is free until the wide waiter whose turn it is can go.
func (g *gap) space(c *Core, at time.Duration, w *Waiter, kept int) space {
	g.open(w, at)
	all, critical := c.limit, w.Level >= priority.Critical
	if !critical {
		all = c.config.others(c.limit)
	}
	free := c.limit - c.flight.n - kept
	return space{
		all:     free,
		others:  min(free, c.config.others(c.limit)-c.flight.n+c.flight.critical),
		reserve: c.config.CriticalReserve - c.flight.critical,
		until:   g.until(at, &c.flight, &c.line.times, all, c.slots(w), critical),
	}
}

// Once reports true the first time it is asked about a slot that is held, through
// whichever copy of the grant: for what may be done once per piece of work.
func (s *Slots) Once(g Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.core.flight.held(g)
	if r == nil || r.once {
		return false
	}
	r.once = true
	return true
}

// Held reports whether a grant's slot has not been released yet.
func (s *Slots) Held(g Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.flight.held(g) != nil
}

// RetryAfter counts a caller of this level that was just refused for lack of
// capacity, and returns when it should come back: whole seconds, 1 to 60; see
// [entry.RetryAfter].
func (s *Slots) RetryAfter(l priority.Level) time.Duration {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.core.RetryAfter(now, l, rand.Float64())
}

func (s *Slots) comebackLocked(now time.Time, l priority.Level, told bool) time.Duration {
	if !told {
		return 0
	}
	return s.core.RetryAfter(now, l, rand.Float64())
}
