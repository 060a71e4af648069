package queue

import (
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// walkIn is Offer where there is nothing to decide: a slot is free, no waiter goes
// first, and there is time enough. Anything else is left to Offer.
func (c *Core) walkIn(now time.Time, t *Ticket) (Grant, bool) {
	slots := c.config.slots(t, c.limit)
	if c.draining || c.line.n > 0 || !c.mayGo(now, t.Level, slots) {
		return Grant{}, false
	}
	at, due := c.at(now), never
	if !t.Deadline.IsZero() {
		left := t.Deadline.Sub(now)
		if left <= 0 || c.meter.Doubtful(now, t.Level, c.flight.n+1, left) {
			return Grant{}, false
		}
		due = after(at, left)
	}
	c.demand.Arrived(now, t.Level, slots)
	g := c.fill(now, at, row{due: due, level: t.Level, route: int32(t.Route), slots: int32(slots)}, nil, 0)
	c.note(now)
	return g, true
}

// queueUp lets w, for whom no slot is free or whose time is too short, join the
// queue if the door lets it, in the place of another waiter if it has to be.
func (c *Core) queueUp(now time.Time, at time.Duration, w *Waiter, door entry.Check, left time.Duration) (entry.Verdict, *Waiter) {
	if c.config.stay(&w.Ticket) <= 0 {
		_, reason := door.Decide(entry.Arrival{Remaining: left}) // what is in line is nothing to it
		return c.turnAway(w, reason), nil
	}
	c.outlast(at)
	w.wide = int32(c.slots(w))
	c.line.find(w)
	c.line.measure(w)
	a, yields := c.arrival(at, w, left)
	if c.demand.Short(now, min(a.MaxWait, left)/4, c.limit) {
		a.Above, a.Own, a.Below = c.demand.Slots(now, w.Level)
		a.Lowest, a.Peers = c.line.lowest() >= w.Level.Index(), c.line.peers(at, w)
	}
	door.Rate, _ = c.meter.Rate(now, c.flight.silence(now))
	v, reason := door.Decide(a)
	if v != entry.Waits {
		return c.turnAway(w, reason), nil
	}
	if !c.fits(at, w, yields) {
		return c.turnAway(w, shed.QueueBytes), nil
	}
	if yields != nil {
		c.line.remove(yields)
		c.refuse(yields, shed.Evicted)
		c.line.find(w) // it may have left with its last waiter
	}
	if c.config.MaxWaitingBytes > 0 {
		c.makeRoom(at, w)
		c.line.find(w)
	}
	w.stays(at, &a, door)
	c.line.add(w, at)
	c.note(now)
	return v, yields
}

// arrival gathers what the door has to know of w, and the waiter that would yield to it.
func (c *Core) arrival(at time.Duration, w *Waiter, left time.Duration) (a entry.Arrival, yields *Waiter) {
	a = entry.Arrival{Level: w.Level, Remaining: left, MaxWait: c.config.stay(&w.Ticket), Slots: c.limit}
	if !w.AnswerBy.IsZero() {
		a.MaxWait = min(a.MaxWait, c.answerable(at, w))
	}
	if a.MaxWait <= 0 {
		return a, nil
	}
	a.Ahead = c.line.ahead(at, w) + int(w.wide) - 1
	if a.Depth, a.Bound = c.depth(w.Level); a.Depth >= a.Bound {
		yields = c.line.last(at, w)
		a.Outranks = yields != nil
	}
	return a, yields
}

// answerable returns how long w may stay so that its answer, or a refusal, can still be
// sent. Work that takes longer than that by itself has other means, and is not counted.
func (c *Core) answerable(at time.Duration, w *Waiter) time.Duration {
	now := c.epoch.Add(at)
	left := w.AnswerBy.Sub(now)
	if service, ok := c.meter.Service(now, w.Level); ok && service < left {
		left -= service
	}
	return left
}

// needs returns the time w must have left, and lets w put the estimate to the test
// when no other waiter does.
func (c *Core) needs(now time.Time, w *Waiter, remaining time.Duration) time.Duration {
	w.probe = remaining > 0 && c.meter.Doubtful(now, w.Level, c.flight.n+1, remaining) && c.meter.Try(w.Level)
	if w.probe {
		return 0
	}
	return c.meter.Needs(now, w.Level, c.flight.n+1)
}

// mayGo reports whether a newcomer of this level may have its slots at once: they are
// free, and no waiter could use them. Critical may use the reserve past waiters of the
// other levels, which may not.
func (c *Core) mayGo(now time.Time, l priority.Level, slots int) bool {
	if l < priority.Critical {
		return c.line.n == 0 && c.room(l, slots, c.hold.Kept(now, l))
	}
	return c.room(l, slots, 0) && (c.line.n == 0 || !c.othersFree() && c.line.classes[priority.Count-1].n == 0)
}

// slots returns how many slots w takes of the limit in force.
func (c *Core) slots(w *Waiter) int { return c.config.slots(&w.Ticket, c.limit) }

// room reports whether so many slots are free for a level, besides those that are kept.
func (c *Core) room(l priority.Level, slots, kept int) bool {
	n := c.flight.n + slots
	return n+kept <= c.limit && (l >= priority.Critical || n-c.flight.critical <= c.config.others(c.limit))
}

// othersFree reports whether a slot is free for the levels below Critical.
func (c *Core) othersFree() bool {
	return c.flight.othersFree(c.limit, c.config.others(c.limit))
}

// depth returns how many wait against the bound that binds this level: its share
// while a higher level waits, else the whole.
func (c *Core) depth(l priority.Level) (depth, bound int) {
	bound = c.config.bound(c.limit)
	if c.line.n >= bound {
		return c.line.n, bound
	}
	if n, above := c.line.upTo(l.Index()); above {
		return n, max(int(c.config.WaitingShare[l.Index()]*float64(bound)), 1)
	}
	return c.line.n, bound
}

// fits reports whether w can have its bytes within the bound, given that yields
// (nil: none) leaves for it.
func (c *Core) fits(at time.Duration, w, yields *Waiter) bool {
	size, ok := c.config.size(&w.Ticket)
	if !ok {
		return false
	}
	w.size = size
	return c.config.MaxWaitingBytes == 0 || c.line.fits(at, w, yields, c.config.MaxWaitingBytes)
}

// makeRoom dismisses those that [line.fits] found, now that they are enough.
func (c *Core) makeRoom(at time.Duration, w *Waiter) {
	for c.line.bytes+w.size > c.config.MaxWaitingBytes && c.line.lowest() < w.Level.Index() {
		c.dismiss(c.line.classes[c.line.lowest()].ends.items[0].caller.tail(at), shed.Evicted)
	}
	if c.line.bytes+w.size <= c.config.MaxWaitingBytes {
		return
	}
	t, _ := c.line.yielder(at, w)
	fromOldest := t.newestFirst(at)
	for c.line.bytes+w.size > c.config.MaxWaitingBytes {
		v := t.newest
		if fromOldest {
			v = t.oldest
		}
		c.dismiss(v, shed.Evicted)
	}
}

// take fills a slot; w gets it, and p is what it is charged.
func (c *Core) take(now time.Time, at time.Duration, w *Waiter, p *piece, waited time.Duration) {
	slots := int32(c.slots(w))
	w.Grant = c.fill(now, at, row{due: w.due, level: w.Level, probe: w.probe, route: int32(w.Route), slots: slots}, p, waited)
	w.Reason = shed.Admitted
}

func (c *Core) fill(now time.Time, at time.Duration, r row, p *piece, waited time.Duration) Grant {
	r.admitted, r.at = now, at
	g := Grant{Waited: waited, at: at, id: c.flight.take(&r, p)}
	c.tally.admitted[r.level.Index()]++
	c.hold.Took(now, r.level)
	c.refill(now, false)
	c.comeback.Admitted(now, r.level)
	return g
}

// outlast charges the work that has outlasted its estimate with the time it takes.
func (c *Core) outlast(at time.Duration) {
	for p := c.flight.outlasted(at); p != nil; p = c.flight.outlasted(at) {
		c.line.outlast(p)
	}
}

// refill keeps since when a newcomer would have to wait with nothing coming free.
func (c *Core) refill(now time.Time, freed bool) { c.flight.note(now, !c.othersFree(), freed) }

// refuse ends w's visit with a reason.
func (c *Core) refuse(w *Waiter, r shed.Reason) {
	if w.probe {
		c.meter.Untried(w.Level)
		w.probe = false
	}
	w.Reason, w.Grant = r, Grant{}
	c.tally.refused[w.Level.Index()][r]++
}

// turnAway refuses a newcomer.
func (c *Core) turnAway(w *Waiter, r shed.Reason) entry.Verdict {
	c.refuse(w, r)
	return entry.Out
}

// dismiss takes w out of line and keeps it until Expire hands it back.
func (c *Core) dismiss(w *Waiter, r shed.Reason) {
	c.line.remove(w)
	c.refuse(w, r)
	w.state = leaving
	c.out.push(w)
}

// sweep dismisses everybody whose time is over.
func (c *Core) sweep(now time.Time, at time.Duration) {
	c.swept = now
	if !c.line.mayExpire(at, &c.meter) {
		return
	}
	needs := c.allNeeds(now)
	w := c.line.expired(at, &needs)
	if w == nil {
		return
	}
	for ; w != nil; w = c.line.expired(at, &needs) {
		if w.Level.Index() == c.line.highest() {
			c.hold.Missed(now, w.Level, c.limit)
		}
		c.dismiss(w, w.Reason)
	}
	c.note(now)
}

// keep keeps a slot that comes free, and was taken at admitted, for the level whose
// waiters ran out of time in the meantime, if none of it waits; see [entry.Hold].
func (c *Core) keep(now, admitted time.Time) {
	l := c.hold.Level()
	if !c.hold.Owes(admitted) || c.line.highest() >= l.Index() {
		return
	}
	if rate := c.demand.From(now, l); rate > 0 {
		c.hold.Freed(now, admitted, time.Duration(float64(time.Second)/rate), c.limit)
	}
}

func (c *Core) allNeeds(now time.Time) (needs [priority.Count]time.Duration) {
	for i := range needs {
		if c.line.classes[i].due.len() > 0 {
			needs[i] = c.meter.Needs(now, priority.All()[i], c.flight.n+1)
		}
	}
	return needs
}

// note tells the law that the load changed.
func (c *Core) note(now time.Time) {
	c.moved(c.law.Note(now, shed.Load{InFlight: c.flight.n, Waiting: c.line.n}))
}

// done tells the law of an end. Wide work is as many narrow pieces that end at once.
func (c *Core) done(now time.Time, s shed.Sample, slots int) (step shed.Step) {
	for left := slots - 1; left >= 0; left-- {
		step = c.law.Done(now, shed.Load{InFlight: c.flight.n + left, Waiting: c.line.n}, s)
		c.moved(step)
	}
	return step
}

func (c *Core) moved(s shed.Step) {
	if !s.Moved() {
		return
	}
	c.limit = c.law.Limit()
	c.step = s
	c.tally.moved(s.Cause)
}

// at returns now as an instant of the line.
func (c *Core) at(now time.Time) time.Duration {
	if c.epoch.IsZero() {
		c.epoch = now
	}
	return now.Sub(c.epoch)
}
