package queue

import (
	"slices"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// decide is the door in plain words.
func (m *model) decide(w *Waiter, limit int, meter *shed.Meter, silence time.Duration) (shed.Verdict, shed.Reason, []*Waiter) {
	left, need := shed.Forever, time.Duration(0)
	if !w.Deadline.IsZero() {
		left = w.Deadline.Sub(m.now)
		need = meter.Needs(m.now, w.Level, m.core.flight.n+1)
		if left > 0 && meter.Doubtful(m.now, w.Level, m.core.flight.n+1, left) && meter.Try(w.Level) {
			need = 0
		}
	}
	if left != shed.Forever && left-need <= 0 {
		return shed.Out, shed.DeadlineUnmeetable, nil
	}
	others := len(m.grants)-m.critical < max(limit-modelReserve, 1) && len(m.grants)+m.core.hold.Kept(m.now, w.Level) < limit
	if m.slotFor(w.Level, others, limit) {
		return shed.In, shed.Admitted, nil
	}
	stay := modelStay
	switch {
	case w.MaxWait < 0:
		return shed.Out, shed.Capacity, nil
	case w.MaxWait > 0:
		stay = min(stay, w.MaxWait)
	}
	if rate, ok := meter.Rate(m.now, silence); ok {
		above := 0.0
		wait := modelWait(m.ahead(w), rate)
		if demand := m.core.demand; demand.Short(m.now, stay/2) {
			if above = demand.Above(m.now, w.Level); above > 0 {
				wait = modelWait(m.ahead(w), rate-above-rate/20)
				if m.count(0, w.Level.Index()-1) == 0 {
					peers := m.ahead(w) - m.count(w.Level.Index()+1, priority.Count)
					wait = min(modelWait(m.ahead(w), rate-above), modelWait(peers, rate/20))
				}
			}
		}
		if left != shed.Forever && wait > left-need {
			return shed.Out, shed.DeadlineUnmeetable, nil
		}
		if above > 0 {
			stay /= 2
		}
		if wait > stay {
			return shed.Out, shed.PredictedWait, nil
		}
	}
	return m.place(w)
}

// modelWait is the turn after n others at such a rate; never, without one.
func modelWait(n int, rate float64) time.Duration {
	s := float64(n+1) / rate * float64(time.Second)
	if rate <= 0 || s >= float64(shed.Forever) {
		return shed.Forever
	}
	return time.Duration(s)
}

func (m *model) slotFor(l priority.Level, others bool, limit int) bool {
	if l < priority.Critical {
		return others && len(m.waiting) == 0
	}
	return len(m.grants) < limit && (len(m.waiting) == 0 || !others && m.count(3, 3) == 0)
}

// ahead is the promise's formula, term by term.
func (m *model) ahead(w *Waiter) int {
	n := m.count(w.Level.Index()+1, priority.Count)
	own := len(m.caller(w.Level.Index(), w.Caller))
	for _, name := range m.rings[w.Level.Index()] {
		n += min(len(m.caller(w.Level.Index(), name)), own+1)
	}
	return n
}

func (m *model) caller(class int, name string) (line []*Waiter) {
	for _, w := range m.waiting {
		if w.Level.Index() == class && w.Caller == name {
			line = append(line, w)
		}
	}
	return line
}

// place finds room for w by number, then by bytes.
func (m *model) place(w *Waiter) (shed.Verdict, shed.Reason, []*Waiter) {
	i := w.Level.Index()
	full := len(m.waiting) >= modelBound
	if n := m.count(0, i); n < len(m.waiting) && n >= max(int(defaultShare[i]*modelBound), 1) {
		full = true
	}
	var gone []*Waiter
	if full {
		v := m.lastServed(i, w.Caller)
		if v == nil {
			return shed.Out, shed.QueueFull, nil
		}
		gone = append(gone, v)
	}
	if m.core.config.MaxWaitingBytes > 0 && !m.core.fits(m.core.at(m.now), w, first(gone)) {
		return shed.Out, shed.QueueBytes, nil
	}
	return shed.Waits, shed.Admitted, gone
}

func first(w []*Waiter) *Waiter {
	if len(w) == 0 {
		return nil
	}
	return w[0]
}

// lastServed plays the order to its end and returns who yields to a newcomer.
func (m *model) lastServed(class int, caller string) *Waiter {
	lo := slices.IndexFunc(m.rings[:], func(r []string) bool { return len(r) > 0 })
	if lo > class {
		return nil
	}
	most, longest := "", 0
	for _, name := range m.rings[lo] { // of equals, the one whose turn is last
		if n := len(m.caller(lo, name)); n >= longest {
			most, longest = name, n
		}
	}
	own := m.caller(lo, caller)
	switch {
	case lo < class, most != caller && longest >= len(own)+2:
		return m.tail(m.caller(lo, most))
	case len(own) > 0 && m.newestFirst(own):
		return own[0]
	}
	return nil
}

func (m *model) newestFirst(line []*Waiter) bool {
	w := line[0]
	return m.now.Sub(m.joined[w]) >= w.half-w.joined
}

func (m *model) tail(line []*Waiter) *Waiter {
	if m.newestFirst(line) {
		return line[0]
	}
	return line[len(line)-1]
}

// next is who goes now, taken out of the model.
func (m *model) next() *Waiter {
	limit := m.core.limit
	if len(m.waiting) == 0 || len(m.grants) >= limit {
		return nil
	}
	others := len(m.grants)-m.critical < max(limit-modelReserve, 1)
	lo, hi := priority.Count, -1
	for i, r := range m.rings {
		if len(r) > 0 {
			lo, hi = min(lo, i), i
		}
	}
	if hi >= 0 && len(m.grants)+m.core.hold.Kept(m.now, priority.FromIndex(hi)) >= limit {
		return nil
	}
	class := hi
	if !others && hi < priority.Count-1 {
		return nil
	}
	m.since++
	if m.since >= 20 && (others || lo == hi) {
		class, m.since = lo, 0
	}
	name := m.rings[class][0]
	line := m.caller(class, name)
	w := line[0]
	if m.newestFirst(line) {
		w = line[len(line)-1]
	}
	m.leave(w)
	if len(line) > 1 {
		m.rings[class] = append(m.rings[class][1:], name)
	}
	return w
}

// leave takes w out of the model.
func (m *model) leave(w *Waiter) {
	m.waiting = slices.DeleteFunc(m.waiting, func(x *Waiter) bool { return x == w })
	if i := w.Level.Index(); len(m.caller(i, w.Caller)) == 0 {
		m.rings[i] = slices.DeleteFunc(m.rings[i], func(n string) bool { return n == w.Caller })
	}
}

// sweep makes everybody leave whose time is over.
func (m *model) sweep() (gone []*Waiter) {
	for _, w := range slices.Clone(m.waiting) {
		stay := modelStay
		if w.MaxWait > 0 {
			stay = min(stay, w.MaxWait)
		}
		late := !w.Deadline.IsZero() && !w.Deadline.After(m.now)
		tight := !w.Deadline.IsZero() && !w.probe && w.Deadline.Sub(m.now) <= m.core.meter.Needs(m.now, w.Level, m.core.flight.n+1)
		switch {
		case late, tight:
			m.leaving[w] = shed.DeadlineUnmeetable
		case m.now.Sub(m.joined[w]) >= stay:
			m.leaving[w] = shed.WaitedTooLong
		default:
			continue
		}
		m.leave(w)
		gone = append(gone, w)
	}
	return gone
}
