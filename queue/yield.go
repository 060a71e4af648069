package queue

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// mayExpire reports whether the time of any waiter can be over: most often none is near.
func (l *line) mayExpire(at time.Duration, m *entry.Meter) bool {
	for i := range l.classes {
		due := l.classes[i].due.first()
		if due != never && due-m.Most(priority.All()[i]) <= at {
			return true
		}
	}
	return l.leaves.first() <= at
}

// expired returns a waiter whose time is over, with the reason set, or nil. needs
// is the time that work of each class must have left.
func (l *line) expired(at time.Duration, needs *[priority.Count]time.Duration) *Waiter {
	for i := range l.classes {
		due := &l.classes[i].due
		if due.len() > 0 && due.first()-needs[i] <= at {
			w := due.items[0].x
			w.Reason = shed.DeadlineUnmeetable
			return w
		}
	}
	if l.leaves.first() <= at {
		w := l.leaves.items[0].x
		w.Reason = shed.WaitedTooLong
		if w.due <= at {
			w.Reason = shed.DeadlineUnmeetable
		}
		return w
	}
	return nil
}

// nextExpiry returns the earliest instant at which expired finds one.
func (l *line) nextExpiry(needs *[priority.Count]time.Duration) time.Duration {
	at := l.leaves.first()
	for i := range l.classes {
		if d := l.classes[i].due.first(); d != never {
			at = min(at, d-needs[i])
		}
	}
	return at
}

// last returns the waiter that yields to newcomer w because the order in force would
// serve it last: one of the lowest class waiting if that is below w's, else the last
// of the caller that yielder names. Nil: w is last itself.
func (l *line) last(at time.Duration, w *Waiter) *Waiter {
	lo := l.lowest()
	if lo < w.Level.Index() {
		return l.classes[lo].ends.items[0].caller.tail(at)
	}
	if t, _ := l.yielder(at, w); t != nil {
		return t.tail(at)
	}
	return nil
}

// yielder returns the caller of w's class that has to yield to newcomer w, and the
// virtual time from which its waiters do: the caller whose last waiter would be
// served last, if that begins no earlier than w would end (else the two would only
// change places), or w's own once newest goes first. Nil: none.
func (l *line) yielder(at time.Duration, w *Waiter) (t *caller, from float64) {
	c := &l.classes[w.Level.Index()]
	if c.n == 0 {
		return nil, 0
	}
	own, most := w.caller, c.ends.items[0].caller
	per := 1 / float64(w.weight())
	from = c.start(own, at, w.est, per) + float64(w.work())*per
	if own != nil {
		from += float64(own.work) * per
	}
	if most != own && most.finish()-float64(most.tail(at).work())*most.per >= from {
		return most, from
	}
	if own != nil && own.n > 0 && own.newestFirst(at) {
		return own, math.Inf(-1)
	}
	return nil, 0
}

// mostYield is how many waiters of one caller give way to a single newcomer in a
// full bound of bytes; the search for them is that long at most.
const mostYield = 64

// fits reports whether w, with its size set, can have its bytes within the bound, given
// that yields (nil: none) leaves for it. The waiters that would make room are chosen by the same
// order as in the bound by number: lower classes first, then the caller that
// [line.yielder] names. None leaves yet, since it may not be enough.
func (l *line) fits(at time.Duration, w, yields *Waiter, bound int64) bool {
	need := l.bytes + w.size - bound
	if yields != nil {
		need -= yields.size
	}
	for i := range w.Level.Index() {
		need -= l.classes[i].bytes
	}
	if yields != nil && yields.Level.Index() < w.Level.Index() {
		need += yields.size
	}
	if need <= 0 {
		return true
	}
	t, from := l.yielder(at, w)
	return t != nil && t.canYield(at, need, from, yields)
}

// canYield reports whether the caller's last-ranked that begin no earlier than from,
// without the one that leaves anyway, hold need bytes.
func (t *caller) canYield(at time.Duration, need int64, from float64, without *Waiter) bool {
	fromOldest := t.newestFirst(at)
	w, begins := t.tail(at), t.finish()
	for i := 0; w != nil && need > 0 && i < mostYield; i++ {
		if begins -= float64(w.work()) * t.per; begins < from {
			return false
		}
		if w != without {
			need -= w.size
		}
		if fromOldest {
			w = w.next
		} else {
			w = w.prev
		}
	}
	return need <= 0
}

// space is what a wide waiter leaves free until it can go.
type space struct {
	all, others int           // free slots, for Critical and for the other levels
	reserve     int           // of those, that only Critical may use
	until       time.Duration // when the wide one is expected to go
}

// fits reports whether w may go in the meantime.
func (s *space) fits(at time.Duration, w *Waiter) bool {
	n := int(max(w.wide, 1))
	if w.Level >= priority.Critical {
		return n <= s.all && (n <= s.reserve || after(at, w.est) <= s.until)
	}
	return n <= s.others && after(at, w.est) <= s.until
}

// mostFillers is how many callers of each level are looked at to fill a gap.
const mostFillers = 8

// filler returns a waiter for the space that a wide one leaves: of the callers that
// would be among the next, the highest level first.
func (l *line) filler(at time.Duration, wide *Waiter, s space) turn {
	lo := l.lowest()
	for i := priority.Count - 1; i >= 0; i-- {
		items := l.classes[i].order.items
		for j := range min(len(items), mostFillers) {
			w := items[j].caller.head(at)
			if items[j].caller == wide.caller || !s.fits(at, w) {
				continue
			}
			k := turn{w: w}
			if l.contest.open {
				k.side = l.contest.of(i == lo)
			}
			return k
		}
	}
	return turn{}
}
