package queue

import (
	"slices"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// decide is the door in plain words.
func (m *model) decide(w *Waiter, limit int, meter *entry.Meter, silence time.Duration) (entry.Verdict, shed.Reason, []*Waiter) {
	m.core.line.find(w)
	m.core.line.measure(w)
	left, need := entry.Forever, time.Duration(0)
	if !w.Deadline.IsZero() {
		left = w.Deadline.Sub(m.now)
		need = meter.Needs(m.now, w.Level, m.core.flight.n+1)
		if left > 0 && meter.Doubtful(m.now, w.Level, m.core.flight.n+1, left) && meter.Try(w.Level) {
			need = 0
		}
	}
	if left != entry.Forever && left-need <= 0 {
		return entry.Out, shed.DeadlineUnmeetable, nil
	}
	others := len(m.grants)-m.critical < max(limit-modelReserve, 1) && len(m.grants)+m.core.hold.Kept(m.now, w.Level) < limit
	if m.slotFor(w.Level, others, limit) {
		return entry.In, shed.Admitted, nil
	}
	stay := modelStay
	switch {
	case w.MaxWait < 0:
		return entry.Out, shed.Capacity, nil
	case w.MaxWait > 0:
		stay = min(stay, w.MaxWait)
	}
	if rate, ok := meter.Rate(m.now, silence); ok {
		wait, most, reason := modelWait(m.ahead(w), rate), stay, shed.PredictedWait
		if left != entry.Forever && left-need < stay {
			most, reason = left-need, shed.DeadlineUnmeetable
		}
		demand := m.core.demand
		demand.Arrived(m.now, w.Level, min(max(w.Slots, 1), limit))
		if demand.Short(m.now, min(stay, left)/4, limit) {
			above, own, below := demand.Slots(m.now, w.Level)
			lowest := m.count(0, w.Level.Index()-1) == 0
			if above > 0 {
				wait = modelWait(m.ahead(w), rate-above-rate/20)
				if lowest {
					wait = min(modelWait(m.ahead(w), rate-above), modelWait(pieces(m.peers(w)), rate/20))
				}
			}
			supply := rate
			if below > 0 {
				supply *= 1.5
			}
			enough := own > 0 && above+own <= supply
			switch ahead := m.ahead(w); {
			case own == 0 || ahead == 0 || enough && above == 0:
			case enough:
				most /= 2
			case above == 0 && below > 0:
				most = min(max(most/4, modelWait(limit-1, rate)), most)
			case ahead < 4 || lowest && pieces(m.peers(w)) == 0:
				most /= 2
			default:
				most /= 4
			}
		}
		if wait > most {
			return entry.Out, reason, nil
		}
	}
	return m.place(w)
}

// modelWait is the turn after n others at such a rate; never, without one.
func modelWait(n int, rate float64) time.Duration {
	s := float64(n+1) / rate * float64(time.Second)
	if rate <= 0 || s >= float64(entry.Forever) {
		return entry.Forever
	}
	return time.Duration(s)
}

func (m *model) slotFor(l priority.Level, others bool, limit int) bool {
	if l < priority.Critical {
		return others && len(m.waiting) == 0
	}
	return len(m.grants) < limit && (len(m.waiting) == 0 || !others && m.count(3, 3) == 0)
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
func (m *model) place(w *Waiter) (entry.Verdict, shed.Reason, []*Waiter) {
	i := w.Level.Index()
	full := len(m.waiting) >= modelBound
	if n := m.count(0, i); n < len(m.waiting) && n >= max(int(defaultShare[i]*modelBound), 1) {
		full = true
	}
	var gone []*Waiter
	if full {
		v := m.lastServed(w)
		if v == nil {
			return entry.Out, shed.QueueFull, nil
		}
		gone = append(gone, v)
	}
	if m.core.config.MaxWaitingBytes > 0 && !m.core.fits(m.core.at(m.now), w, first(gone)) {
		return entry.Out, shed.QueueBytes, nil
	}
	return entry.Waits, shed.Admitted, gone
}

func first(w []*Waiter) *Waiter {
	if len(w) == 0 {
		return nil
	}
	return w[0]
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

// leave takes w out of the model.
func (m *model) leave(w *Waiter) {
	m.waiting = slices.DeleteFunc(m.waiting, func(x *Waiter) bool { return x == w })
	m.quiet(w.Level.Index())
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
