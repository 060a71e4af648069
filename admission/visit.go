package admission

import (
	"context"
	"sync"
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// visit is one pass through the gate: what is asked, what came of it, and what has
// to be given back. It lives from the arrival to the refusal or the release, and is
// used again after that: it is too large to be copied from hand to hand.
type visit struct {
	*config
	gate    *Gate
	route   *route    // nil without HTTP
	now     time.Time // when the next step is decided
	arrived time.Time // zero: not asked for
	Ticket
	answerBy time.Time // when an answer can no longer be sent; zero: never
	free     bool      // takes no token of a caller: a CORS preflight
	pattern  string    // of its route, from the router or Options.Routes; empty: not known yet

	taken receipts
	units *unitBill // what it takes of other units than requests; nil: nothing
	sold
	limit   verdict     // of the limit that refused, or the one nearest exhaustion
	broken  string      // name of the limit that refused; empty when it was no limit
	shadow  shed.Reason // what shadow mode let through; else Admitted
	capped  int         // slots counted under CallerCap
	sharing int         // slots counted under its plan's share of the pool

	at         *pool // whose slot it takes
	slot       queue.Grant
	held       time.Duration // until it left its slot, of a request that has
	reason     shed.Reason
	retryAfter time.Duration // 0: not to be told
}

var visits = sync.Pool{New: func() any { return new(visit) }}

// arrive starts a visit. It ends with leave.
func arrive(g *Gate, rt *route) *visit {
	v := visits.Get().(*visit)
	v.config, v.gate, v.route = g.config.Load(), g, rt
	return v
}

// tick reads the clock, after everything that may have taken time.
func (v *visit) tick() { v.now = v.gate.clock.now() }

func (v *visit) leave() {
	parts := v.taken.parts
	*v = visit{}
	v.taken.parts = parts
	visits.Put(v)
}

// admit takes the steps in the order of the contract: a rate is asked before
// capacity, so that a caller over its own rate gets 429 however full the service
// is, and a slot is asked for last, since only a slot makes anybody wait.
func (v *visit) admit(ctx context.Context) bool {
	if v.open() && v.withinRate(ctx) && v.withinCapacity(ctx) {
		v.count(shed.Admitted)
		return true
	}
	return false
}

// count adds the visit to the gate's tally.
func (v *visit) count(r shed.Reason) {
	t, level := &v.gate.tally, v.Level.Index()
	t.visits[level][r].Add(1)
	if r == shed.Admitted && v.shadow != shed.Admitted {
		t.shadowed[level][v.shadow].Add(1)
	}
}

// refuse records why, and always says false, so that a step can end with it.
func (v *visit) refuse(r shed.Reason) bool {
	v.reason = r
	return false
}

func (v *visit) open() bool {
	if v.gate.draining.Load() {
		v.retryAfter = time.Second
		return v.refuse(shed.Draining)
	}
	return true
}

// withinCapacity passes the caps and takes a slot, waiting for it when need be.
func (v *visit) withinCapacity(ctx context.Context) bool {
	p := v.find(v.Pool)
	if p == nil {
		p = v.pool
	}
	v.at = p
	v.listed()
	if v.unpressed() && v.withinCaps() && v.takeSlot(ctx, p) && v.accounted() {
		return true
	}
	v.unspent()
	if v.retryAfter == 0 { // nothing was asked of the slots
		v.retryAfter = p.slots.RetryAfter(v.Level)
	}
	return false
}

// listed makes sure that Drain and Stats look at the visit's pool, which a reload may
// have removed since the visit began. It reports false when the gate is shut.
func (v *visit) listed() bool {
	return v.gate.config.Load() == v.config || v.gate.list(v.at)
}

// accounted gives the slot back when it came from a removed pool that no Drain saw.
func (v *visit) accounted() bool {
	if v.listed() {
		return true
	}
	v.at.slots.Release(v.slot, shed.Unmeasured)
	v.leaveCaps()
	return v.refuse(shed.Draining)
}

// unpressed refuses the levels that pressure turns away.
func (v *visit) unpressed() bool {
	if v.gauge != nil && v.gauge.Sheds(v.now, v.Level, v.Caller.Key) {
		return v.over(shed.Pressure)
	}
	return true
}

// withinCaps counts the visit under its route's and its caller's own caps.
func (v *visit) withinCaps() bool {
	shadow := v.Shadow&ShadowCapacity != 0
	if v.route != nil && v.route.most > 0 && !v.route.enter(v.Slots, shadow) && !v.over(v.route.capReason()) {
		return false
	}
	if !v.withinShares(shadow) {
		v.leaveCaps()
		return false
	}
	return true
}

// over is a refusal for capacity, which shadow mode only takes note of.
func (v *visit) over(r shed.Reason) bool {
	if v.Shadow&ShadowCapacity == 0 {
		return v.refuse(r)
	}
	if v.shadow == shed.Admitted {
		v.shadow = r
	}
	return true
}

func (v *visit) takeSlot(ctx context.Context, p *pool) bool {
	t := queue.Ticket{Level: v.Level, Caller: v.Caller.Key, Space: v.Caller.Space, Weight: v.weight, Slots: v.Slots, Deadline: v.Deadline, MaxWait: v.MaxWait, AnswerBy: v.answerBy, Bytes: v.Bytes}
	if v.route != nil {
		t.Route = v.route.id
	}
	if v.Shadow&ShadowCapacity != 0 {
		return v.takeAnySlot(p, t)
	}
	slot, after, err := p.slots.Ask(ctx, v.now, &t)
	if err != nil {
		v.leaveCaps()
		v.retryAfter = after
		return v.refuse(err.(shed.Reason))
	}
	v.slot = slot
	return true
}

// takeAnySlot runs the work whether a slot is free or not: no request waits in shadow.
// Only a drain refuses.
func (v *visit) takeAnySlot(p *pool, t queue.Ticket) bool {
	slot, err := p.slots.TryAcquire(v.now, t)
	switch {
	case err == shed.Draining: // shut since the visit began
		v.leaveCaps()
		return v.refuse(shed.Draining)
	case err != nil:
		v.over(err.(shed.Reason))
		slot = p.slots.Force(v.now, t)
	}
	v.slot = slot
	return true
}

// refused accounts for a visit that ends without a slot.
func (v *visit) refused() {
	v.count(v.reason)
	v.gate.lists.refused(v, v.ends().Refused(v.Level, v.reason))
	if v.reason != shed.Draining && v.gate.draining.Load() {
		v.gate.notifyIdle() // a slot that came when the client was gone has been given back
	}
}

// tellRefused tells the observer of a refusal, last of all: a panic of its own then
// takes nothing from the caller's answer.
func (v *visit) tellRefused() {
	defer v.leave()
	if v.Observer != nil {
		e := v.event()
		e.Reason, e.RetryAfter = v.reason, v.retryAfter
		v.Observer.Observe(e)
	}
}

// ended accounts for the end of admitted work whose slot is already back. The observer
// is told last, and a waiting Drain even if it panics.
func (v *visit) ended(o shed.Outcome, served time.Duration, streamed bool) {
	v.leaveCaps()
	if streamed {
		v.gate.streams.Add(-1)
	}
	v.gate.lists.ended(v, served, v.ends().Ended(v.Level, o, served))
	defer v.finished()
	if v.Observer != nil {
		e := v.event()
		e.Outcome, e.Served, e.Streamed, e.Waited = o, served, streamed, v.slot.Waited
		v.Observer.Observe(e)
	}
}

func (v *visit) finished() {
	if v.gate.draining.Load() {
		v.gate.notifyIdle()
	}
	v.leave()
}

func (v *visit) event() Event {
	e := Event{Gate: v.Name, Route: v.pattern, Caller: v.Caller.Alias, Level: v.Level, Shadow: v.shadow, Source: v.limit.source}
	if v.at != nil {
		e.Pool = v.at.name
	}
	return e
}

// leaveCaps takes the work off its route's and its caller's counts.
func (v *visit) leaveCaps() {
	if v.route != nil && v.route.most > 0 {
		v.route.leave(v.Slots)
	}
	v.leaveShares()
}

// withinShares counts the visit under CallerCap, and under its plan's share of the
// pool.
func (v *visit) withinShares(shadow bool) bool {
	if v.CallerCap > 0 {
		var ok bool
		if v.capped, ok = v.gate.shares.enter(v.sharer(nil), v.Slots, v.CallerCap, shadow); !ok && !v.over(shed.CallerCap) {
			return false
		}
	}
	if v.share <= 0 {
		return true
	}
	var ok bool
	v.sharing, ok = v.gate.shares.enter(v.sharer(v.at), v.Slots, v.slots(v.at.slots.Limit()), shadow)
	return ok || v.over(shed.CallerCap)
}

func (v *visit) sharer(in *pool) sharer {
	return sharer{pool: in, space: v.taken.key.Space, id: v.taken.key.ID}
}

// leaveShares takes the visit off its caller's counts.
func (v *visit) leaveShares() {
	if v.capped > 0 {
		v.gate.shares.leave(v.sharer(nil), v.capped)
	}
	if v.sharing > 0 {
		v.gate.shares.leave(v.sharer(v.at), v.sharing)
	}
}
