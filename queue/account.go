package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// take fills a slot; w is who gets it.
func (c *Core) take(now time.Time, at time.Duration, w *Waiter, waited time.Duration) {
	w.Grant = c.fill(now, at, row{due: w.due, level: w.Level, probe: w.probe}, waited)
	w.Reason = shed.Admitted
}

func (c *Core) fill(now time.Time, at time.Duration, r row, waited time.Duration) Grant {
	r.admitted = now
	g := Grant{Waited: waited, at: at, id: c.table.take(&r)}
	i := r.level.Index()
	c.admitted[i]++
	if i == priority.Count-1 {
		c.critical++
	}
	c.refill(now, false)
	c.comeback.Admitted(now, r.level)
	return g
}

// refill keeps since when somebody would have to wait with nothing coming free.
func (c *Core) refill(now time.Time, freed bool) {
	was := c.full
	if c.full = !c.othersFree(); c.full && (freed || !was) {
		c.since = now
	}
}

// silence returns for how long nothing has come free.
func (c *Core) silence(now time.Time) time.Duration {
	if !c.full {
		return 0
	}
	return now.Sub(c.since)
}

// refuse ends w's visit with a reason.
func (c *Core) refuse(w *Waiter, r shed.Reason) {
	if w.probe {
		c.meter.Untried(w.Level)
		w.probe = false
	}
	w.Reason, w.Grant = r, Grant{}
	c.refused[w.Level.Index()][r]++
}

// turnAway refuses a newcomer.
func (c *Core) turnAway(w *Waiter, r shed.Reason) shed.Verdict {
	c.refuse(w, r)
	return shed.Out
}

// evict takes w out of line for somebody else.
func (c *Core) evict(w *Waiter) {
	c.line.remove(w)
	c.refuse(w, shed.Evicted)
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
	needs := c.allNeeds(now)
	w := c.line.expired(at, &needs)
	if w == nil {
		return
	}
	for ; w != nil; w = c.line.expired(at, &needs) {
		c.dismiss(w, w.Reason)
	}
	c.note(now)
}

func (c *Core) allNeeds(now time.Time) (needs [priority.Count]time.Duration) {
	for i := range needs {
		if c.line.classes[i].due.len() > 0 {
			needs[i] = c.meter.Needs(now, priority.FromIndex(i), c.table.n+1)
		}
	}
	return needs
}

func (c *Core) load() shed.Load { return shed.Load{InFlight: c.table.n, Waiting: c.line.n} }

// note tells the law that the load changed.
func (c *Core) note(now time.Time) { c.moved(c.law.Note(now, c.load())) }

func (c *Core) moved(s shed.Step) {
	if !s.Moved() {
		return
	}
	c.limit = c.law.Limit()
	c.step, c.cause = s, s.Cause
	c.moves[min(int(s.Cause), len(c.moves)-1)]++
}

// at returns now as an instant of the line.
func (c *Core) at(now time.Time) time.Duration {
	if c.epoch.IsZero() {
		c.epoch = now
	}
	return now.Sub(c.epoch)
}

// revoke takes back a slot whose owner was gone before it could use it.
func (c *Core) revoke(now time.Time, g Grant, l priority.Level, r shed.Reason) {
	if c.table.held(g) == nil {
		return
	}
	c.Release(now, g, shed.Ignored)
	c.admitted[l.Index()]--
	c.refused[l.Index()][r]++
}
