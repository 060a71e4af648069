package queue

import (
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Core decides which work gets a slot, which waits and which is turned away. It is pure: time
// is an argument, and it has no lock, channel or goroutine, so that programs in virtual time
// can drive it. It is not safe for concurrent use; [Slots] is the lock and the wait around it.
//
// After every call of Offer, Cancel, Release or Update, and when [Core.NextExpiry]
// comes, the program empties Expire and then Next: the first hands back waiters that
// have to leave, the second those that now have a slot. Time must not run backwards between calls.
//
// Offer, Next, Expire, Cancel and Release cost O(log n) in the number of waiters
// and do not allocate, apart from growing to a size not seen before.
type Core struct {
	config   Config
	law      shed.Law
	limit    int // what the law says
	line     line
	out      list // waiters that have to leave and were not handed back yet
	flight   flight
	gap      gap
	meter    entry.Meter
	demand   entry.Demand
	hold     entry.Hold
	comeback entry.RetryAfter
	draining bool
	epoch    time.Time
	swept    time.Time // when expired waiters were last looked for
	step     shed.Step // the latest move not yet taken by Moved
	tally    tally
}

// NewCore builds a core. Errors name the field of the Config.
func NewCore(config Config) (*Core, error) {
	config, err := config.settled()
	if err != nil {
		return nil, err
	}
	law, err := config.Limit.New()
	if err != nil {
		return nil, err
	}
	if err := config.checkReserve(law); err != nil {
		return nil, err
	}
	c := &Core{config: config, law: law, limit: law.Limit()}
	c.line.init()
	c.flight.init()
	return c, nil
}

// Offer asks for a slot. In: w.Grant is the slot. Waits: w is in the queue, and the
// core's until it comes out again. Out: w.Reason says why. evictee is a waiter
// that gave up its place for w, with the reason set; with a bound in bytes there may be
// more of them, which come out through Expire.
func (c *Core) Offer(now time.Time, w *Waiter) (v entry.Verdict, evictee *Waiter) {
	at := c.at(now)
	w.state, w.probe, w.due = outside, false, never
	if g, ok := c.walkIn(now, &w.Ticket); ok {
		w.Grant, w.Reason = g, shed.Admitted
		return entry.In, nil
	}
	if c.line.n > 0 {
		c.sweep(now, at)
	}
	if c.draining {
		return c.turnAway(w, shed.Draining), nil
	}
	door, left := entry.Check{}, entry.Forever
	if !w.Deadline.IsZero() {
		left = w.Deadline.Sub(now)
		door.Service = c.needs(now, w, left)
		w.due = after(at, left)
	}
	c.demand.Arrived(now, w.Level, c.slots(w))
	if c.mayGo(now, w.Level, c.slots(w)) && door.InTime(left) {
		c.take(now, at, w, nil, 0)
		c.note(now)
		return entry.In, nil
	}
	return c.queueUp(now, at, w, door, left)
}

// force gives w a slot whether one is free or not; see [Slots.Force].
func (c *Core) force(now time.Time, w *Waiter) {
	at := c.at(now)
	w.state, w.probe, w.due = outside, false, never
	if !w.Deadline.IsZero() {
		w.due = after(at, w.Deadline.Sub(now))
	}
	c.take(now, at, w, nil, 0)
	c.note(now)
}

// Next returns the waiter that has a slot from now on, in w.Grant, or nil when no slot
// is free for any that wait.
func (c *Core) Next(now time.Time) *Waiter {
	if c.line.n == 0 || c.flight.n >= c.limit {
		return nil
	}
	at := c.at(now)
	c.sweep(now, at)
	kept := c.hold.Kept(now, priority.All()[max(c.line.highest(), 0)])
	if c.flight.n+kept >= c.limit {
		return nil
	}
	c.outlast(at)
	k := c.line.next(at, !c.othersFree())
	if w := c.gap.before(); w != nil && k.w != nil && k.w.Level == w.Level {
		k.w = w
	}
	if w := k.w; w != nil && !c.room(w.Level, c.slots(w), kept) { // only a wide one
		k = c.line.filler(at, w, c.gap.space(c, at, w, kept))
	}
	if w := k.w; w != nil {
		p := c.line.take(at, k, c.slots(w))
		c.take(now, at, w, &p, at-w.joined)
		c.tally.served(w.Grant.Waited)
		c.note(now)
	}
	return k.w
}

// Expire returns a waiter that has to leave the queue, with the reason set, or nil.
func (c *Core) Expire(now time.Time) *Waiter {
	if c.line.n > 0 {
		c.sweep(now, c.at(now))
	}
	w := c.out.oldest
	if w != nil {
		c.out.remove(w)
		w.state = outside
	}
	return w
}

// NextExpiry returns the instant at which Expire has a waiter to hand back unless
// something else happens before, and whether there is one.
func (c *Core) NextExpiry() (time.Time, bool) {
	if c.out.oldest != nil {
		return c.epoch, true
	}
	needs := c.allNeeds(c.swept)
	at := c.line.nextExpiry(&needs)
	if until, kept := c.hold.Until(c.swept); kept && c.line.n > 0 { // then a slot is free for those that wait
		at = min(at, until.Sub(c.epoch))
	}
	return c.epoch.Add(at), at != never
}

// Cancel takes w out of the queue because its client left. It reports false when w
// was not waiting any more.
func (c *Core) Cancel(now time.Time, w *Waiter) bool { return c.cancel(now, w, shed.ClientGone) }

func (c *Core) cancel(now time.Time, w *Waiter, r shed.Reason) bool {
	switch w.state {
	case waiting:
		c.line.remove(w)
		c.refuse(w, r)
		c.note(now)
		return true
	case leaving:
		c.out.remove(w)
		w.state = outside
	}
	return false
}

// Release gives the slot back and returns the move of the limit that follows from
// it. A grant that is not held, because it was released before or never given, does
// nothing.
func (c *Core) Release(now time.Time, g Grant, o shed.Outcome) shed.Step {
	r := c.flight.held(g)
	if r == nil {
		return shed.Step{}
	}
	sample, at, p := r.sample(c.epoch, o), c.at(now), c.flight.piece(g)
	c.measure(now, at, r, &sample)
	c.keep(now, r.admitted)
	if c.tally.ended(r, p, at); p != nil {
		c.line.end(p, at)
	}
	if o != shed.Ignored {
		c.line.times.add(r.level, int(r.route), at-g.at, int(r.slots))
	}
	slots := int(r.slots)
	c.flight.release(g)
	c.refill(now, true)
	return c.done(now, sample, slots)
}

// revoke takes back a slot whose owner was gone before it could use it.
func (c *Core) revoke(now time.Time, g Grant, l priority.Level, r shed.Reason) {
	if c.flight.held(g) == nil {
		return
	}
	c.Release(now, g, shed.Ignored)
	c.tally.revoked(l, r)
}

// measure feeds the meter with a piece of work that ends.
func (c *Core) measure(now time.Time, at time.Duration, r *row, s *shed.Sample) {
	switch {
	case !r.probe:
	case s.Outcome == shed.Ignored, s.Outcome == shed.Unmeasured:
		c.meter.Untried(r.level)
	default:
		c.meter.Tried(r.level, s.Outcome == shed.Served && !now.After(s.Deadline))
	}
	if s.Outcome == shed.Ignored {
		return
	}
	c.meter.Done(now, r.level, at-r.at, int(r.crowd), s.Outcome)
	if c.flight.full {
		c.meter.Freed(now, c.flight.silence(now))
		for range r.slots - 1 {
			c.meter.Freed(now, 0)
		}
	}
}

// RetryAfter counts a caller of this level that was just refused and returns when it
// should come back; see [entry.RetryAfter]. random is evenly spread over [0, 1).
func (c *Core) RetryAfter(now time.Time, l priority.Level, random float64) time.Duration {
	return c.comeback.Refused(now, l, random)
}

// Update adopts another configuration, or returns an error that names the field
// and changes nothing. Who waits above a lowered bound stays, with the stay it was
// promised; work in flight above a lowered limit drains. The law goes on when its
// configuration is the same; a changed configuration of the same kind starts from
// the number in force if its law can (a Resume(limit int) method).
func (c *Core) Update(now time.Time, config Config) error {
	config, err := config.settled()
	if err != nil {
		return err
	}
	law := c.law
	if !sameLimit(c.config.Limit, config.Limit) {
		if law, err = config.Limit.New(); err != nil {
			return err
		}
		if r, ok := law.(interface{ Resume(limit int) }); ok && sameKind(c.config.Limit, config.Limit) {
			r.Resume(c.limit)
		}
	}
	if err := config.checkReserve(law); err != nil {
		return err
	}
	c.config, c.law = config, law
	c.limit = c.law.Limit()
	c.refill(now, false)
	c.note(now)
	return nil
}

// Drain makes all waiters leave, through Expire, and refuses newcomers.
// Work in flight is not touched. There is no way back.
func (c *Core) Drain(now time.Time) {
	c.draining = true
	for c.line.all.oldest != nil {
		c.dismiss(c.line.all.oldest, shed.Draining)
	}
	c.note(now)
}

// Moved returns the latest move of the limit since it was last asked, the zero Step
// if there was none.
func (c *Core) Moved() shed.Step {
	s := c.step
	c.step = shed.Step{}
	return s
}

// Stats returns what the core looks like at now.
func (c *Core) Stats(now time.Time) Stats {
	s := Stats{
		Limit: c.limit, InFlight: c.flight.n, Bound: c.config.bound(c.limit),
		Admitted: c.tally.admitted, Waited: c.tally.waited, Waits: c.tally.waits, Refused: c.tally.refused,
		SlotTime: c.tally.slotTime, Estimated: c.tally.estimated, EstimateOff: c.tally.off,
		Service: c.meter.Median(), Cause: c.tally.cause, Moves: c.tally.moves,
	}
	s.waiting(&c.line)
	if law, ok := c.law.(shed.Bounded); ok {
		s.Least, s.Most = law.Bounds()
	}
	s.DrainRate, _ = c.meter.Rate(now, c.flight.silence(now))
	if w := c.line.all.oldest; w != nil {
		s.Oldest = max(c.at(now)-w.joined, 0)
	}
	return s
}
