package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// walkIn is Offer where there is nothing to decide: a slot is free, nobody goes
// first, and there is time enough. Anything else is left to Offer.
func (c *Core) walkIn(now time.Time, t *Ticket) (Grant, bool) {
	if c.draining || c.line.n > 0 || !c.mayGo(t.Level) {
		return Grant{}, false
	}
	at, due := c.at(now), never
	if !t.Deadline.IsZero() {
		left := t.Deadline.Sub(now)
		if left <= 0 || c.meter.Doubtful(now, t.Level, c.table.n+1, left) {
			return Grant{}, false
		}
		due = after(at, left)
	}
	g := c.fill(now, at, row{due: due, level: t.Level}, 0)
	c.note(now)
	return g, true
}

// queueUp lets w, for whom no slot is free or whose time is too short, join the
// queue if the door lets it, in somebody else's place if it has to be.
func (c *Core) queueUp(now time.Time, at time.Duration, w *Waiter, door shed.EntryCheck, left time.Duration) (shed.Verdict, *Waiter) {
	a, yields := c.arrival(at, w, left)
	door.Rate, _ = c.meter.Rate(now, c.silence(now))
	v, reason := door.Decide(a)
	if v != shed.Waits {
		return c.turnAway(w, reason), nil
	}
	if !c.fits(at, w, yields) {
		return c.turnAway(w, shed.QueueBytes), nil
	}
	if yields != nil {
		c.evict(yields)
	}
	c.makeRoom(at, w)
	c.join(at, w, a, door.Service)
	c.note(now)
	return v, yields
}

// arrival gathers what the door has to know of w, and who would yield to it.
func (c *Core) arrival(at time.Duration, w *Waiter, left time.Duration) (a shed.Arrival, yields *Waiter) {
	a = shed.Arrival{Level: w.Level, Remaining: left, MaxWait: c.config.stay(&w.Ticket)}
	if a.MaxWait <= 0 {
		return a, nil
	}
	a.Ahead = c.line.ahead(w.Level, w.Tenant)
	if a.Depth, a.Bound = c.depth(w.Level); a.Depth >= a.Bound {
		yields = c.line.last(at, w.Level.Index(), w.Tenant)
		a.Outranks = yields != nil
	}
	return a, yields
}

// needs returns the time w must have left, and lets w put the estimate to the test
// when nobody else does.
func (c *Core) needs(now time.Time, w *Waiter, remaining time.Duration) time.Duration {
	if remaining <= 0 || !c.meter.Doubtful(now, w.Level, c.table.n+1, remaining) {
		return c.meter.Needs(now, w.Level, c.table.n+1)
	}
	if w.probe = c.meter.Try(w.Level); w.probe {
		return 0
	}
	return c.meter.Needs(now, w.Level, c.table.n+1)
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
	w.joined = at
	stay := a.MaxWait
	if a.Remaining != shed.Forever {
		stay = min(stay, a.Remaining-service)
	}
	w.half = after(at, stay/2)
	w.leave = after(at, a.MaxWait)
	if w.probe {
		w.leave = min(w.leave, w.due)
	}
	c.line.add(w)
}
