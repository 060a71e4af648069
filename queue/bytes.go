package queue

import (
	"time"

	"github.com/headgate-go/headgate/shed"
)

// mostYield is how many waiters of one tenant give way to a single newcomer in a
// full bound of bytes; the search for them is that long at most.
const mostYield = 64

// fits reports whether w can have its bytes within the bound, given that yields
// (nil: nobody) leaves for it. Those who would make room are chosen by the same
// order as in the bound by number: lower classes first, then the tenant that
// [line.yielder] names. Nobody leaves yet, since it may not be enough.
func (c *Core) fits(at time.Duration, w, yields *Waiter) bool {
	size, ok := c.config.size(&w.Ticket)
	if !ok {
		return false
	}
	w.size = size
	if c.config.MaxWaitingBytes == 0 {
		return true
	}
	need := c.line.bytes + size - c.config.MaxWaitingBytes
	if yields != nil {
		need -= yields.size
	}
	for i := range w.Level.Index() {
		need -= c.line.classes[i].bytes
	}
	if yields != nil && yields.Level.Index() < w.Level.Index() {
		need += yields.size
	}
	if need <= 0 {
		return true
	}
	t, keep := c.line.yielder(at, w.Level.Index(), w.Tenant)
	return t != nil && t.canYield(at, need, keep, yields)
}

// canYield reports whether the tenant's last-ranked, without the one who leaves
// anyway, hold need bytes while keep waiters stay.
func (t *tenant) canYield(at time.Duration, need int64, keep int, without *Waiter) bool {
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

// makeRoom dismisses those who [Core.fits] found, now that they are enough.
func (c *Core) makeRoom(at time.Duration, w *Waiter) {
	if c.config.MaxWaitingBytes == 0 {
		return
	}
	for c.line.bytes+w.size > c.config.MaxWaitingBytes && c.line.lowest() < w.Level.Index() {
		c.dismiss(c.line.classes[c.line.lowest()].longest.items[0].tail(at), shed.Evicted)
	}
	if c.line.bytes+w.size <= c.config.MaxWaitingBytes {
		return
	}
	t, _ := c.line.yielder(at, w.Level.Index(), w.Tenant)
	fromOldest := t.newestFirst(at)
	for c.line.bytes+w.size > c.config.MaxWaitingBytes {
		v := t.newest
		if fromOldest {
			v = t.oldest
		}
		c.dismiss(v, shed.Evicted)
	}
}
