package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
)

// modelFair is virtual time in the plainest way: what each caller and each side of
// the contest between levels has had, added up anew whenever it is asked for.
type modelFair struct {
	callers [priority.Count]map[string]*modelShare
	present [priority.Count]float64
	high    modelShare
	low     modelShare
	contest bool
	turns   uint64
}

type modelShare struct {
	settled float64
	per     float64
	turn    uint64
	came    uint64
	runs    []*modelRun
}

// modelRun is work in flight that counts.
type modelRun struct {
	class  int
	caller *modelShare
	side   *modelShare // nil: no contest
	start  time.Time
	est    time.Duration
}

func newModelFair() modelFair {
	f := modelFair{high: modelShare{per: 1}, low: modelShare{per: 19}}
	for i := range f.callers {
		f.callers[i] = map[string]*modelShare{}
	}
	return f
}

func (s *modelShare) at(now time.Time) float64 {
	v := s.settled
	for _, r := range s.runs {
		v += float64(max(r.est, now.Sub(r.start))) * s.per
	}
	return v
}

func (s *modelShare) settle(r *modelRun, now time.Time) {
	if s == nil {
		return
	}
	for i, x := range s.runs {
		if x == r {
			s.runs = append(s.runs[:i:i], s.runs[i+1:]...)
			s.settled += float64(now.Sub(r.start)) * s.per
			return
		}
	}
}

// late reports whether work of the class has outlasted its estimate: between two
// dispatches the core ranks such callers by what it last knew.
func (m *model) late(class int) bool {
	for _, s := range m.fair.callers[class] {
		for _, r := range s.runs {
			if m.now.Sub(r.start) > r.est {
				return true
			}
		}
	}
	return false
}

// start is the virtual time at which a caller's next waiter would have its turn if
// it were its only one.
func (m *model) start(w *Waiter) float64 {
	i := w.Level.Index()
	s, fresh := m.fair.callers[i][w.Caller], m.fair.present[i]+float64(w.est)/float64(w.Weight)
	switch {
	case s == nil:
		return fresh
	case len(m.caller(i, w.Caller)) > 0:
		return s.at(m.now)
	}
	return max(fresh, s.at(m.now))
}

// enter gives w's caller its place; w does not wait yet.
func (m *model) enter(w *Waiter) {
	i := w.Level.Index()
	v := m.start(w)
	s := m.fair.callers[i][w.Caller]
	if s == nil {
		s = &modelShare{per: 1 / float64(w.Weight)}
		m.fair.callers[i][w.Caller] = s
	}
	before := s.at(m.now)
	s.per = 1 / float64(w.Weight)
	s.settled += before - s.at(m.now)
	if len(m.caller(i, w.Caller)) == 0 {
		s.settled += v - s.at(m.now)
		m.fair.turns++
		s.turn, s.came = m.fair.turns, m.fair.turns
	}
}

// next is who goes now, taken out of the model, with what is charged.
func (m *model) next() (*Waiter, *modelRun) {
	limit := m.core.limit
	others := len(m.grants)-m.critical < max(limit-modelReserve, 1)
	lo, hi := m.ends()
	if len(m.waiting) == 0 || len(m.grants) >= limit || !others && hi < priority.Count-1 {
		return nil, nil
	}
	if len(m.grants)+m.core.hold.Kept(m.now, priority.All()[hi]) >= limit {
		return nil, nil
	}
	class, side := hi, (*modelShare)(nil)
	switch {
	case lo == hi:
		m.fair.contest = false
	case others:
		class, side = m.contend(lo, hi)
	}
	s, w := m.least(class)
	r := &modelRun{class: class, caller: s, side: side, start: m.now, est: m.core.line.estimate(w)}
	m.fair.present[class] = max(m.fair.present[class], s.at(m.now))
	s.runs = append(s.runs, r)
	m.fair.turns++
	s.turn = m.fair.turns
	if side != nil {
		side.runs = append(side.runs, r)
	}
	m.leave(w)
	return w, r
}

func (m *model) ends() (lo, hi int) {
	lo, hi = priority.Count, -1
	for _, w := range m.waiting {
		lo, hi = min(lo, w.Level.Index()), max(hi, w.Level.Index())
	}
	return lo, hi
}

// contend says which side of the contest goes.
func (m *model) contend(lo, hi int) (int, *modelShare) {
	f := &m.fair
	if !f.contest {
		_, w := m.least(lo)
		enter := f.high.at(m.now) + 19*float64(m.core.line.estimate(w))
		f.low.settled += max(enter-f.low.at(m.now), 0)
		f.contest = true
	}
	if f.low.at(m.now) <= f.high.at(m.now) {
		return lo, &f.low
	}
	return hi, &f.high
}

// least is the caller of a class that has had least, and which of its waiters goes.
func (m *model) least(class int) (best *modelShare, head *Waiter) {
	for name, s := range m.fair.callers[class] {
		line := m.caller(class, name)
		if len(line) == 0 {
			continue
		}
		if v := s.at(m.now); best == nil || v < best.at(m.now) || v == best.at(m.now) && s.turn < best.turn {
			best, head = s, line[0]
			if m.newestFirst(line) {
				head = line[len(line)-1]
			}
		}
	}
	return best, head
}

// settle ends what was charged.
func (m *model) settle(r *modelRun) {
	if r == nil {
		return
	}
	r.caller.settle(r, m.now)
	r.side.settle(r, m.now)
	m.quiet(r.class)
}

// quiet forgets what a class had once nothing of it waits or runs.
func (m *model) quiet(class int) {
	for name, s := range m.fair.callers[class] {
		if len(m.caller(class, name)) > 0 || len(s.runs) > 0 {
			return
		}
		_ = name
	}
	m.fair.callers[class] = map[string]*modelShare{}
	m.fair.present[class] = 0
}

// lastServed is the waiter that yields to newcomer w, nil: none.
func (m *model) lastServed(w *Waiter) *Waiter {
	class := w.Level.Index()
	lo, _ := m.ends()
	if lo > class {
		return nil
	}
	if m.late(lo) {
		return m.core.line.last(m.core.at(m.now), w)
	}
	var most *modelShare
	var name string
	for n, s := range m.fair.callers[lo] {
		if len(m.caller(lo, n)) == 0 {
			continue
		}
		if f, g := m.finish(lo, n), m.finish(lo, name); most == nil || f > g || f == g && s.came > most.came {
			most, name = s, n
		}
	}
	line := m.caller(lo, name)
	last := m.tail(line)
	if lo < class {
		return last
	}
	own := m.caller(class, w.Caller)
	ends := m.start(w)
	for _, x := range append(own, w) {
		ends += float64(x.est) / float64(w.Weight)
	}
	switch {
	case name != w.Caller && m.finish(lo, name)-float64(last.est)*most.per >= ends:
		return last
	case len(own) > 0 && m.newestFirst(own):
		return own[0]
	}
	return nil
}

// finish is the virtual time at which the caller's last waiter would end.
func (m *model) finish(class int, name string) float64 {
	s := m.fair.callers[class][name]
	if s == nil {
		return 0
	}
	v := s.at(m.now)
	for _, w := range m.caller(class, name) {
		v += float64(w.est) * s.per
	}
	return v
}

// ahead is the slot time that goes before newcomer w, in pieces of the mean size. The
// sum itself is that of spans, which has a test of its own.
func (m *model) ahead(w *Waiter) int {
	parts := m.peers(w)
	for _, x := range m.waiting {
		if x.Level > w.Level {
			parts += x.parts
		}
	}
	return pieces(parts)
}

// peers is the part of it that is of w's own class.
func (m *model) peers(w *Waiter) int64 {
	class, parts, mean := w.Level.Index(), int64(0), float64(m.core.line.times.all.get())
	var s spans
	for name, c := range m.fair.callers[class] {
		all := int64(0)
		for _, x := range m.caller(class, name) {
			all += x.parts
		}
		s.add(all, int(1/c.per), 1)
	}
	per := 1 / float64(w.Weight)
	span := max(m.start(w)-m.fair.present[class], float64(w.est)*per) / mean * partUnit
	for _, x := range m.caller(class, w.Caller) {
		span += float64(x.parts) * per
	}
	if m.count(class, class) > 0 {
		parts = s.sum(int64(span))
	}
	return parts
}
