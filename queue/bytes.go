package queue

import "time"

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
	t, keep := l.yielder(at, w.Level.Index(), w.Caller)
	return t != nil && t.canYield(at, need, keep, yields)
}

// canYield reports whether the caller's last-ranked, without the one that leaves
// anyway, hold need bytes while keep waiters stay.
func (t *caller) canYield(at time.Duration, need int64, keep int, without *Waiter) bool {
	fromOldest := t.newestFirst(at)
	w := t.tail(at)
	for i := 0; w != nil && need > 0 && i < min(t.n-keep, mostYield); i++ {
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
