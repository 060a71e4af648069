package admission

import (
	"context"
	"math"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// The limits, in the order they are asked.
const (
	byAddress = iota // Options.Address or, for preflights, HTTP.PreflightRate, before the caller is known
	byCaller         // Options.Rate or Options.Anonymous
	byRoute          // the route's own
	byQuota          // Options.Quota
	limits           // how many there are
)

// receipts is what one visit took from its limits. A grant is taken apart: its key,
// cost and time are those of the visit, so one copy of them serves all limits but
// the one that does not know the caller yet.
type receipts struct {
	address string // whose key the address limit was asked with
	key     ratelimit.Key
	cost    int
	at      time.Time
	of      [limits]receipt
	parts   *[limits]ratelimit.Parts // made for limits that are made of several, and kept for the next visit
}

type receipt struct {
	from  ratelimit.Undoer // nil: nothing taken
	mark  uint64
	parts bool // there are some
}

func (rs *receipts) keep(i int, g *ratelimit.Grant) {
	r := &rs.of[i]
	r.from, r.mark, r.parts = g.From, g.Mark, g.Parts.Any()
	if !r.parts {
		return
	}
	if rs.parts == nil {
		rs.parts = new([limits]ratelimit.Parts)
	}
	rs.parts[i] = g.Parts
}

func (rs *receipts) decision(i int) ratelimit.Decision {
	r, key, cost := &rs.of[i], rs.key, rs.cost
	if i == byAddress {
		key, cost = addressKey(rs.address), 1
	}
	d := ratelimit.Decision{OK: true, Grant: ratelimit.Grant{From: r.from, Key: key, Cost: cost, At: rs.at, Mark: r.mark}}
	if r.parts {
		d.Grant.Parts = rs.parts[i]
	}
	return d
}

// limitKey is the caller in the terms of the limiters.
func limitKey(c caller.Caller) ratelimit.Key {
	return ratelimit.Key{Space: c.Space, ID: c.Key, Plan: c.Plan}
}

func addressKey(address string) ratelimit.Key { return limitKey(caller.OfAddress(address)) }

// undo returns what one limit granted.
func (rs *receipts) undo(now time.Time, i int) {
	if rs.of[i].from != nil {
		rs.decision(i).Undo(now)
		rs.of[i].from = nil
	}
}

// adjust puts another amount in place of the one that was taken, of a unit or, without
// one, of the cost, at every limit that charged it. The address was charged for its visit,
// not for the work.
func (rs *receipts) adjust(now time.Time, unit string, n int) {
	was := rs.cost
	if unit != "" {
		was, _ = rs.key.Units.Of(unit)
	}
	for i := byCaller; i < limits; i++ {
		if rs.of[i].from != nil {
			d := rs.decision(i)
			d.Grant.Unit = unit
			d.Adjust(now, n-was)
		}
	}
}

// verdict is the part of a decision that the client and the observer hear of.
type verdict struct {
	by     ratelimit.Limiter // nil: none was asked
	which  int               // of the limits
	takes  int               // how much of it the request takes, at least 1
	ok     bool
	never  bool
	source ratelimit.Source
	left   int
	wait   time.Duration
	reset  time.Duration
	policy string
}

// withinRate asks every limit that applies, all or nothing: a refusal returns what
// the others had granted and carries the longest wait of those that refused.
func (v *visit) withinRate(ctx context.Context) bool {
	rs := &v.taken
	rs.key, rs.cost, rs.at = limitKey(v.Caller), v.price(max(v.Cost, 1)), v.now
	if v.units != nil {
		rs.key.Units = &v.units.taken
	}
	if v.free {
		return true
	}
	limit := v.Rate
	if !v.Caller.Verified {
		limit = v.Anonymous
	}
	v.ask(ctx, byCaller, limit)
	if v.route != nil {
		v.ask(ctx, byRoute, v.route.limit)
	}
	v.ask(ctx, byQuota, v.Quota)
	if v.remote || v.route != nil && v.route.remote {
		defer v.tick() // what is decided next must not rest on the time before
	}
	return v.settle()
}

func (v *visit) ask(ctx context.Context, i int, l ratelimit.Limiter) {
	if l == nil || l == ratelimit.Unlimited {
		return
	}
	rs := &v.taken
	if v.limit.refused() {
		v.alsoAsk(i, l)
		return
	}
	var d ratelimit.Decision
	if b, own := l.(*ratelimit.Buckets); own { // as nearly always
		b.Decide(v.now, &rs.key, rs.cost, 0, &d)
	} else {
		d = l.Take(ctx, v.now, rs.key, rs.cost, 0)
	}
	if d.OK && d.Grant.From != nil {
		rs.keep(i, &d.Grant)
	}
	v.heard(i, l, &d)
}

// alsoAsk looks whether a limit would refuse for longer than the one that did. It
// takes nothing, not even for a moment: no other caller may be refused for the sake of
// a request that is refused itself.
func (v *visit) alsoAsk(i int, l ratelimit.Limiter) {
	if p, ok := l.(ratelimit.Peeker); ok {
		d := p.Peek(v.now, v.taken.key, v.taken.cost, 0)
		v.heard(i, l, &d)
	}
}

// heard keeps the answer that tells the caller most: a refusal rather than a
// grant, the longest of several refusals, and of several grants the one under which
// the fewest such requests may follow: limits differ in what one takes.
func (v *visit) heard(i int, l ratelimit.Limiter, d *ratelimit.Decision) {
	if d.Shadow != "" && v.shadow == shed.Admitted {
		v.shadow = shed.RateLimited
	}
	if d.OK && d.Remaining == math.MaxInt && d.Source == ratelimit.SourceLocal {
		return // it takes nothing of this request, which has no balance to hear of
	}
	known, takes := &v.limit, max(d.Cost, 1)
	if d.Cost == 0 {
		takes = v.takes(i)
	}
	if known.by != nil {
		switch {
		case d.OK && (!known.ok || d.Remaining/takes >= known.left/known.takes):
			return
		case !d.OK && !known.ok && (known.never || !d.Never && d.Wait <= known.wait):
			return
		}
	}
	*known = verdict{
		by: l, which: i, takes: takes, ok: d.OK, never: d.Never, source: d.Source,
		left: d.Remaining, wait: d.Wait, reset: d.Reset, policy: d.Policy,
	}
}

// takes returns how many tokens this request takes from a limit, at least 1.
func (v *visit) takes(i int) int {
	if i == byAddress {
		return 1
	}
	return max(v.taken.cost, 1)
}

// settle refuses if any limit did, unless they are in shadow.
func (v *visit) settle() bool {
	if !v.limit.refused() {
		return true
	}
	v.takeNothing()
	reason := v.limit.refusal()
	if v.Shadow&ShadowRate != 0 {
		v.shadow, v.limit = reason, verdict{}
		return true
	}
	v.broken = v.limit.policy
	if reason != shed.NotAdmissible {
		v.retryAfter = v.limit.wait
	}
	return v.refuse(reason)
}

// takeNothing returns what the limits granted. Only the address has paid for good
// when the caller is not verified: its token is the price of the look-up, which
// was made.
func (v *visit) takeNothing() {
	for i := range limits {
		if i != byAddress || v.Caller.Verified {
			v.taken.undo(v.now, i)
		}
	}
}

func (d *verdict) refused() bool { return d.by != nil && !d.ok }

// named is a limiter that says itself why it refuses.
type named interface{ Reason() shed.Reason }

func (d *verdict) refusal() shed.Reason {
	by, names := d.by.(named)
	switch {
	case names && refusal(by.Reason()):
		return by.Reason()
	case d.source == ratelimit.SourceClosed:
		return shed.LimiterUnavailable
	case d.never:
		return shed.NotAdmissible
	}
	return shed.RateLimited
}

// unspent gives the long quota back when capacity refused, unless the client left
// or asked for the impossible. A token of the rate stays spent: attempts count.
func (v *visit) unspent() {
	if v.reason != shed.ClientGone && v.reason != shed.DeadlineUnmeetable {
		v.taken.undo(v.now, byQuota)
	}
}

// withinAddress asks the limit that comes before the caller is known.
func (v *visit) withinAddress(ctx context.Context, limit ratelimit.Limiter) bool {
	v.taken.key, v.taken.cost, v.taken.at = addressKey(v.taken.address), 1, v.now
	v.ask(ctx, byAddress, limit)
	return v.settle()
}

// asSold applies the caller's plan and rank: it takes note of the plan's factor,
// share and weight, and returns the level of work that ranks at level by itself. Only who is
// verified has a rank, and a plan raises, never lowers.
func (v *visit) asSold(level priority.Level) priority.Level {
	planner := v.plans
	if !v.Caller.Verified {
		planner, v.Caller.Plan = v.strangers, ""
	}
	if planner != nil {
		p := planner.PlanOf(limitKey(v.Caller))
		v.sold = sold{factor: p.Cost, share: p.Share, weight: p.Weight}
		if floor, ok := priority.Parse(p.Level); ok && v.Caller.Verified {
			level = max(level, floor)
		}
	}
	if v.Caller.Verified && v.Caller.Level != 0 {
		level = v.Caller.Level.Apply(level)
	}
	if v.Caller.Verified && v.Caller.Weight > 0 {
		v.weight = v.Caller.Weight
	}
	return level
}
