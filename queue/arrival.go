package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// arrival gathers what the door has to know of w, and who would yield to it.
func (c *Core) arrival(now time.Time, at time.Duration, w *Waiter) (shed.Door, shed.Arrival, *Waiter) {
	door := shed.Door{}
	a := shed.Arrival{Level: w.Level, Remaining: shed.Forever, Slot: c.mayGo(w.Level)}
	if !w.Deadline.IsZero() {
		a.Remaining = w.Deadline.Sub(now)
		door.Service = c.needs(w, a.Remaining)
	}
	if a.Slot {
		return door, a, nil
	}
	var yields *Waiter
	if a.MaxWait = c.config.stay(&w.Ticket); a.MaxWait > 0 {
		door.Rate, _ = c.meter.Rate(now, c.silence(now))
		a.Ahead = c.line.ahead(w.Level, w.Tenant)
		if a.Depth, a.Bound = c.depth(w.Level); a.Depth >= a.Bound {
			yields = c.line.last(at, w.Level.Index(), w.Tenant)
			a.Outranks = yields != nil
		}
	}
	return door, a, yields
}

// needs returns the time w must have left, and lets w put the estimate to the test
// when nobody else does.
func (c *Core) needs(w *Waiter, remaining time.Duration) time.Duration {
	if remaining <= 0 || !c.meter.Doubtful(w.Level, remaining) {
		return c.meter.Needs(w.Level)
	}
	if w.probe = c.meter.Try(w.Level); w.probe {
		return 0
	}
	return c.meter.Needs(w.Level)
}

// mayGo reports whether a newcomer of this level may have a slot at once: one is
// free, and nobody who waits could use it. Critical may use the reserve past
// waiters of the other levels, who may not.
func (c *Core) mayGo(l priority.Level) bool {
	if l < priority.Critical {
		return c.line.n == 0 && c.othersFree()
	}
	return c.table.n < c.limit && (c.line.n == 0 || !c.othersFree() && c.line.classes[priority.Count-1].n == 0)
}

// othersFree reports whether a slot is free for the levels below Critical.
func (c *Core) othersFree() bool {
	return c.table.n < c.limit && c.table.n-c.critical < c.config.others(c.limit)
}

// depth returns how many wait against the bound that binds this level: its share
// while somebody above waits, else the whole.
func (c *Core) depth(l priority.Level) (depth, bound int) {
	bound = c.config.bound(c.limit)
	if c.line.n >= bound {
		return c.line.n, bound
	}
	if n, above := c.line.upTo(l.Index()); above {
		return n, max(int(c.config.Share[l.Index()]*float64(bound)), 1)
	}
	return c.line.n, bound
}

// join puts w in line.
func (c *Core) join(at time.Duration, w *Waiter, a shed.Arrival, service time.Duration) {
	w.joined, w.due = at, never
	stay := a.MaxWait
	if a.Remaining != shed.Forever {
		w.due = after(at, a.Remaining)
		stay = min(stay, a.Remaining-service)
	}
	w.half = after(at, stay/2)
	w.leave = after(at, a.MaxWait)
	if w.probe {
		w.leave = min(w.leave, w.due)
	}
	c.line.add(w)
}
