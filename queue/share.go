package queue

import (
	"math"
	"math/bits"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
)

// share is how much of the slots one party has had, in virtual time: slot time over
// weight. Work counts with its estimate as soon as it has a slot, with the time it
// holds the slot once that is longer, and with what it really took when it ends.
type share struct {
	settled float64       // ns, of all that has ended, and of where the party began
	per     float64       // 1 / weight
	est     time.Duration // slots × estimate of running work within its estimate
	late    int64         // slots of running work that has outlasted its estimate
	starts  time.Duration // Σ slots × start of that work; may wrap, since only late × now − starts counts
}

// piece is one piece of work as it is charged to a share.
type piece struct {
	caller *caller // nil: it is not charged
	side   *share  // of the contest between levels; nil: none
	start  time.Duration
	est    time.Duration // of the time that each of its slots is held
	base   time.Duration // the mean of its route at the time; zero: not known
	slots  int32
	late   bool // it has outlasted its estimate
}

func (p *piece) work() time.Duration { return time.Duration(p.slots) * p.est }

// outlasts returns the instant at which the piece takes longer than estimated.
func (p *piece) outlasts() time.Duration { return after(p.start, p.est) }

// at returns the virtual time of the party.
func (s *share) at(now time.Duration) float64 { return s.settled + float64(s.running(now))*s.per }

// running returns the slot time that running work counts for.
func (s *share) running(now time.Duration) time.Duration {
	return s.est + time.Duration(s.late)*now - s.starts
}

func (s *share) begin(p *piece) { s.est += p.work() }

// outlast makes p count with the time it holds its slots. It is over its estimate.
func (s *share) outlast(p *piece) {
	s.est -= p.work()
	s.late += int64(p.slots)
	s.starts += time.Duration(p.slots) * p.start
}

// end makes p count with what it took.
func (s *share) end(p *piece, now time.Duration) {
	if p.late {
		s.late -= int64(p.slots)
		s.starts -= time.Duration(p.slots) * p.start
	} else {
		s.est -= p.work()
	}
	s.settled += float64(time.Duration(p.slots)*(now-p.start)) * s.per
}

// lift moves the party forward to v, never back.
func (s *share) lift(now time.Duration, v float64) {
	if d := v - s.at(now); d > 0 {
		s.settled += d
	}
}

// weigh gives the party another weight from now on; what it has had stays.
func (s *share) weigh(now time.Duration, weight int) {
	per := 1 / float64(weight)
	s.settled += float64(s.running(now)) * (s.per - per)
	s.per = per
}

// contest is between the lowest level that waits and those above it, as of two
// parties with weights of 1 and 19: low work is slowed down, not shut out.
type contest struct {
	high, low share
	open      bool // both sides wait
}

// lowPart is the reciprocal of the low side's part of the slot time.
const lowPart = entry.LowestTurn

func newContest() contest { return contest{high: share{per: 1}, low: share{per: lowPart - 1}} }

// turn returns the side that goes next while both wait. The low side enters one
// piece of its own behind the high one, like every newcomer.
func (c *contest) turn(now, lowEst time.Duration) *share {
	if !c.open {
		c.open = true
		c.low.lift(now, c.high.at(now)+float64(lowEst)*c.low.per)
	}
	if c.low.at(now) <= c.high.at(now) {
		return &c.low
	}
	return &c.high
}

// of returns one side.
func (c *contest) of(low bool) *share {
	if low {
		return &c.low
	}
	return &c.high
}

// times learns how long work holds a slot: the mean of its route or of
// its caller, whichever has been closer, else of its level.
type times struct {
	all    mean
	levels [priority.Count]mean
	routes []mean // by Ticket.Route
}

const highestRoute = 1024 // whose time is learned

const (
	unitTime = time.Millisecond // estimate without evidence: turns are equal in requests then

)

// of returns the estimate for a ticket of the given caller, nil: not known.
func (t *times) of(ticket *Ticket, by *caller) time.Duration {
	base := t.route(ticket.Route)
	switch {
	case by != nil && by.took.n >= evidence && (base == 0 || by.gain.value > 0):
		return by.took.get()
	case base > 0:
		return base
	}
	return t.levels[ticket.Level.Index()].get()
}

// route returns the mean of a route, zero without evidence.
func (t *times) route(r int) time.Duration {
	if r > 0 && r < len(t.routes) && t.routes[r].n >= evidence {
		return t.routes[r].get()
	}
	return 0
}

// add records that work held its slots for so long.
func (t *times) add(l priority.Level, route int, held time.Duration, slots int) {
	for range min(slots, meanWindow) {
		t.all.add(held)
	}
	t.levels[l.Index()].add(held)
	if route <= 0 || route > highestRoute {
		return
	}
	for route >= len(t.routes) {
		t.routes = append(t.routes, mean{})
	}
	t.routes[route].add(held)
}

// learn records what a caller's work took, and by how much its own mean was closer to
// that than the one of the route.
func (t *caller) learn(held, base time.Duration) {
	if base > 0 && t.took.n >= evidence {
		t.gain.add((held - base).Abs() - (held - t.took.get()).Abs())
	}
	t.took.add(held)
}

// mean is a mean in which the latest 32 or so values count.
type mean struct {
	value float64
	n     int32
}

const (
	meanWindow = 32
	evidence   = 4 // values that make a mean better than the next wider one
	leastTime  = time.Microsecond
)

func (m *mean) add(d time.Duration) {
	if m.n == meanWindow { // a product is cheaper than a quotient
		m.value += (float64(d) - m.value) * (1.0 / meanWindow)
		return
	}
	m.n++
	m.value += (float64(d) - m.value) / float64(m.n)
}

func (m *mean) get() time.Duration {
	if m.n == 0 {
		return unitTime
	}
	return max(time.Duration(m.value), leastTime)
}

// spans knows how much slot time the callers of a class wait for, and their weight:
// Fenwick trees over the span slot time ÷ weight, in steps of a quarter of an
// octave. All in O(1), up to the number of steps.
type spans [spanSteps + 1]span

type span struct{ parts, weight int64 }

const (
	spanSteps = 256
	partUnit  = 1 << 20 // parts of a mean piece
)

// pieces returns parts in whole mean pieces.
func pieces(parts int64) int { return int((parts + partUnit/2) / partUnit) }

// spanStep returns the step of a span, from 1.
func spanStep(v int64) int {
	if v < 4 {
		return int(max(v, 0)) + 1
	}
	n := bits.Len64(uint64(v))
	return (n-1)*4 + int(v>>(n-3))&3 + 1
}

// add counts a caller in, or with sign -1 out.
func (s *spans) add(parts int64, weight int, sign int64) {
	if parts != 0 {
		s.put(spanStep(parts/int64(weight)), span{sign * parts, sign * int64(weight)})
	}
}

// move counts a caller whose slot time has changed.
func (s *spans) move(from, to int64, weight int) {
	i, j := spanStep(from/int64(weight)), spanStep(to/int64(weight))
	if i == j && from > 0 && to > 0 {
		s.put(i, span{parts: to - from})
		return
	}
	s.add(from, weight, -1)
	s.add(to, weight, 1)
}

func (s *spans) put(i int, d span) {
	for ; i <= spanSteps; i += i & -i {
		s[i].parts += d.parts
		s[i].weight += d.weight
	}
}

// sum returns Σ min(slot time, v × weight) over all callers; those within the same
// step as v are taken together, which is too much by a fifth of them at most.
func (s *spans) sum(v int64) int64 {
	i := spanStep(v)
	below, within := s.upTo(i-1), s.upTo(i)
	return below.parts + min(within.parts-below.parts, times64(v, within.weight-below.weight)) +
		times64(v, s[spanSteps].weight-within.weight)
}

func (s *spans) upTo(i int) (all span) {
	for ; i > 0; i -= i & -i {
		all.parts += s[i].parts
		all.weight += s[i].weight
	}
	return all
}

// times64 multiplies without overflow.
func times64(v, n int64) int64 {
	if n > 0 && v > math.MaxInt64/4/n {
		return math.MaxInt64 / 4
	}
	return v * n
}
