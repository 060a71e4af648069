package queue

import "time"

// Force takes a slot for t whether one is free or not, for a gate in shadow mode,
// which counts what it would have refused and lets it run. The work is in flight
// like any other; with more of it than slots, the limit that a law learns is
// advice only. It never blocks.
func (s *Slots) Force(now time.Time, t Ticket) Grant {
	s.mu.Lock()
	w := s.waiter()
	w.Ticket = t
	s.core.Force(now, w)
	g := w.Grant
	s.keep(w)
	s.settle(now, nil)
	return g
}

// Force gives w a slot whether one is free or not; see [Slots.Force].
func (c *Core) Force(now time.Time, w *Waiter) {
	at := c.at(now)
	w.state, w.probe, w.due = outside, false, never
	if !w.Deadline.IsZero() {
		w.due = after(at, w.Deadline.Sub(now))
	}
	c.take(now, at, w, 0)
	c.note(now)
}

// Once reports true the first time it is asked about a slot that is held, through
// whichever copy of the grant: for what may be done once per piece of work.
func (s *Slots) Once(g Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.core.table.held(g)
	if r == nil || r.once {
		return false
	}
	r.once = true
	return true
}
