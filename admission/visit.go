package admission

import (
	"context"
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// visit is one pass through the gate: what is asked, and what came of it.
type visit struct {
	*config
	gate  *Gate
	route *route // nil without HTTP
	now   time.Time
	Ticket
	free bool // takes no token: a CORS preflight

	permit     Permit
	address    ratelimit.Decision // of Options.Address
	limit      verdict            // of the limit that refused, or the one nearest exhaustion
	reason     shed.Reason
	retryAfter time.Duration // 0: not to be told
}

// admit takes the steps in the order of the contract: a rate is asked before
// capacity, so that a caller over its own rate hears 429 however full the house
// is, and a slot is asked for last, since only a slot makes anybody wait.
func (v *visit) admit(ctx context.Context) bool {
	v.permit.gate, v.permit.route, v.permit.level = v.gate, v.route, v.Level
	if v.open() && v.withinRate(ctx) && v.withinCapacity(ctx) {
		v.gate.tally.admitted(v)
		return true
	}
	return false
}

// refuse records why, and always says false, so that a step can end with it.
func (v *visit) refuse(r shed.Reason) bool {
	v.reason = r
	return false
}

func (v *visit) open() bool {
	switch {
	case v.gate.draining.Load():
		v.retryAfter = time.Second
		return v.refuse(shed.Draining)
	case v.gate.refusing != shed.Admitted:
		v.retryAfter = time.Second
		return v.refuse(v.gate.refusing)
	}
	return true
}

// withinCapacity passes the caps and takes a slot, waiting for it when need be.
func (v *visit) withinCapacity(ctx context.Context) bool {
	p := v.find(v.Pool)
	if p == nil {
		p = v.pool
	}
	v.permit.pool = p
	if v.withinCaps() && v.takeSlot(ctx, p) {
		return true
	}
	v.unspent()
	v.retryAfter = p.slots.RetryAfter(v.Level)
	return false
}

// withinCaps counts the visit under its route's and its caller's own caps.
func (v *visit) withinCaps() bool {
	shadow := v.Shadow&ShadowCapacity != 0
	if v.route != nil && !v.route.enter(shadow) && !v.over(v.route.capReason()) {
		return false
	}
	if v.shares == nil {
		return true
	}
	key, most := v.Caller.limitKey(), v.share()
	if most > 0 {
		v.permit.shares, v.permit.taken.key = v.shares, key
		if !v.shares.enter(key, most, shadow) && !v.over(shed.TenantCap) {
			v.permit.shares = nil
			v.permit.leaveCaps()
			return false
		}
	}
	return true
}

// over is a refusal for capacity, which shadow mode only takes note of.
func (v *visit) over(r shed.Reason) bool {
	if v.Shadow&ShadowCapacity == 0 {
		return v.refuse(r)
	}
	if v.permit.shadow == shed.Admitted {
		v.permit.shadow = r
	}
	return true
}

func (v *visit) takeSlot(ctx context.Context, p *pool) bool {
	t := queue.Ticket{Level: v.Level, Tenant: v.Caller.Key, Deadline: v.Deadline, MaxWait: v.MaxWait, Bytes: v.Bytes}
	if v.Shadow&ShadowCapacity != 0 {
		return v.takeAnySlot(p, t)
	}
	slot, err := p.slots.Acquire(ctx, v.now, t)
	if err != nil {
		v.permit.leaveCaps()
		return v.refuse(err.(shed.Reason))
	}
	v.permit.slot = slot
	return true
}

// takeAnySlot runs the work whether a slot is free or not: nobody waits in shadow.
func (v *visit) takeAnySlot(p *pool, t queue.Ticket) bool {
	slot, err := p.slots.TryAcquire(v.now, t)
	if err != nil {
		v.over(err.(shed.Reason))
		slot = p.slots.Force(v.now, t)
	}
	v.permit.slot = slot
	return true
}

// event describes a refused visit.
func (v *visit) event() Event {
	return Event{
		Gate: v.Name, Pool: v.permit.poolName(), Level: v.Level, Reason: v.reason,
		Source: v.limit.source, RetryAfter: v.retryAfter,
	}
}

// refused accounts for a refusal: counted, and told to the observer.
func (v *visit) refused() {
	v.gate.tally.visits[v.Level.Index()][v.reason].Add(1)
	v.gate.limited.note(v.now, v.reason, v.Caller)
	if v.Observer != nil {
		v.Observer.Observe(v.event())
	}
}

func (v *visit) rejection() *Rejection {
	return &Rejection{Reason: v.reason, RetryAfter: v.retryAfter, Policy: v.limit.policy}
}
