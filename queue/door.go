package queue

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// door is what is known without the lock while nothing changes: every slot is taken, and
// no work waits here. Then whatever has more time left than work needs is refused for
// capacity, and told to come back in the span in force. The holder of the lock shuts it,
// and opens it with anything that may free a slot.
type door struct {
	shut  bool // under the lock
	level [priority.Count]doorLevel
}

type doorLevel struct {
	span  atomic.Uint64 // see packed; zero: open
	needs atomic.Int64  // nanoseconds that work has to have left
	away  atomic.Int64  // refused without the lock and not yet told to the core
	v     int64         // of the latest span; under the lock
}

// packed packs until when, for how many callers and as how many seconds what is told is the
// same.
func packed(until time.Duration, callers, v int64) uint64 {
	return uint64(until/time.Millisecond)<<24 | uint64(min(callers, 1<<18-1))<<6 | uint64(v)
}

// refuse reports whether a ticket is refused without the lock, and when to come back.
func (d *door) refuse(epoch, now time.Time, t *Ticket) (after time.Duration, refused bool) {
	l := &d.level[t.Level.Index()]
	in := l.span.Load()
	if in == 0 || now.Sub(epoch) >= time.Duration(in>>24)*time.Millisecond {
		return 0, false
	}
	if !t.Deadline.IsZero() && int64(t.Deadline.Sub(now)) <= l.needs.Load() {
		return 0, false
	}
	if l.away.Add(1) > int64(in>>6&(1<<18-1)) {
		l.away.Add(-1)
		return 0, false
	}
	v := int64(in & (1<<6 - 1))
	return time.Duration(v+rand.Int64N(v+1)) * time.Second, true
}

// close shuts the door for a level that was just refused, if nothing but an event that
// opens it can admit any work, and reports whether it did.
func (d *door) close(c *Core, now time.Time, lv priority.Level, r shed.Reason) bool {
	if r != shed.Capacity || c.config.MaxWait >= 0 || c.line.n > 0 || c.flight.n < c.limit {
		return false
	}
	l := &d.level[lv.Index()]
	v, callers, until := c.comeback.Same(now, lv)
	l.needs.Store(int64(c.meter.Most(lv)))
	l.span.Store(packed(until.Sub(c.epoch), callers, v))
	l.v, d.shut = v, true
	return true
}

// open makes every ticket ask under the lock.
func (d *door) open() {
	if !d.shut {
		return
	}
	d.shut = false
	for i := range d.level {
		d.level[i].span.Store(0)
	}
}

// tell accounts for those that were refused without the lock.
func (d *door) tell(c *Core, now time.Time, lv priority.Level) {
	l := &d.level[lv.Index()]
	if l.away.Load() == 0 { // as nearly always, and cheaper to ask
		return
	}
	if n := l.away.Swap(0); n > 0 {
		c.comeback.Told(now, lv, l.v, n)
		c.tally.refused[lv.Index()][shed.Capacity] += uint64(n)
	}
}
