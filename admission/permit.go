package admission

import (
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Permit is a slot held. It must be given back with [Permit.Release]; a copy is
// the same permit. The zero Permit, which a nil gate gives, holds nothing.
type Permit struct {
	gate   *Gate
	pool   *pool
	slot   queue.Grant
	route  *route        // nil without HTTP
	shares *tenantShares // nil: not counted under TenantCap
	taken  receipts
	source ratelimit.Source
	level  priority.Level
	shadow shed.Reason // what shadow mode let through; else Admitted
}

// Release gives the slot back and says how the work ended. Only the first call on
// a permit counts, whichever copy it is made on. It never blocks.
func (p *Permit) Release(o shed.Outcome) {
	if p.gate == nil {
		return
	}
	if held, live := p.pool.slots.Release(p.slot, o); live {
		p.ended(o, held, false)
	}
}

// Waited returns how long the work stood in the queue.
func (p *Permit) Waited() time.Duration { return p.slot.Waited }

// ended accounts for the end of admitted work whose slot is already back.
func (p *Permit) ended(o shed.Outcome, served time.Duration, streamed bool) {
	p.leaveCaps()
	if obs := p.gate.config.Load().Observer; obs != nil {
		obs.Observe(p.event(o, served, streamed))
	}
	if p.gate.draining.Load() {
		p.gate.notifyIdle()
	}
}

func (p *Permit) event(o shed.Outcome, served time.Duration, streamed bool) Event {
	return Event{
		Gate: p.gate.config.Load().Name, Pool: p.poolName(), Level: p.level, Reason: shed.Admitted,
		Shadow: p.shadow, Source: p.source, Outcome: o, Streamed: streamed,
		Waited: p.slot.Waited, Served: served,
	}
}

func (p *Permit) poolName() string {
	if p.pool == nil {
		return ""
	}
	return p.pool.name
}

// leaveCaps takes the work off its route's and its caller's counts.
func (p *Permit) leaveCaps() {
	if p.route != nil {
		p.route.leave()
	}
	if p.shares != nil {
		p.shares.leave(p.taken.key)
	}
}
