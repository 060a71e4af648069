package admission

import (
	"context"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// The limits that know the caller, in the order they are asked.
const (
	byCaller = iota // Options.Rate or Options.Anonymous
	byRoute         // the route's own
	byQuota         // Options.Quota
	limits          // how many there are
)

// receipts is what one visit took from its limits. A grant is taken apart: its key,
// cost and time are those of the visit, so one copy of them serves all limits.
type receipts struct {
	key  ratelimit.Key
	cost int
	at   time.Time
	of   [limits]receipt
}

type receipt struct {
	from  ratelimit.Undoer // nil: nothing taken
	mark  uint64
	parts ratelimit.Parts
}

func (rs *receipts) keep(i int, g *ratelimit.Grant) {
	rs.of[i] = receipt{from: g.From, mark: g.Mark, parts: g.Parts}
}

func (rs *receipts) decision(i int) ratelimit.Decision {
	r := &rs.of[i]
	return ratelimit.Decision{OK: true, Grant: ratelimit.Grant{
		From: r.from, Key: rs.key, Cost: rs.cost, At: rs.at, Mark: r.mark, Parts: r.parts,
	}}
}

// undo returns what one limit granted.
func (rs *receipts) undo(now time.Time, i int) {
	if rs.of[i].from != nil {
		rs.decision(i).Undo(now)
		rs.of[i].from = nil
	}
}

// adjust charges more, or gives some back, at every limit that granted.
func (rs *receipts) adjust(now time.Time, by int) {
	for i := range rs.of {
		if rs.of[i].from != nil {
			rs.decision(i).Adjust(now, by)
		}
	}
}

// verdict is the part of a decision that the client and the observer hear of.
type verdict struct {
	by     ratelimit.Limiter // nil: nobody was asked
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
	rs := &v.permit.taken
	rs.key, rs.cost, rs.at = v.Caller.limitKey(), max(v.Cost, 1), v.now
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
	return v.settle()
}

func (v *visit) ask(ctx context.Context, i int, l ratelimit.Limiter) {
	if l == nil || l == ratelimit.Unlimited {
		return
	}
	rs := &v.permit.taken
	d := l.Take(ctx, v.now, rs.key, rs.cost, 0)
	if d.OK && d.Grant.From != nil {
		rs.keep(i, &d.Grant)
	}
	v.heard(l, &d)
}

// heard keeps the answer that tells the caller most: a refusal rather than a
// grant, the longest of several refusals, the scarcest of several grants.
func (v *visit) heard(l ratelimit.Limiter, d *ratelimit.Decision) {
	if d.Shadow != "" && v.permit.shadow == shed.Admitted {
		v.permit.shadow = shed.RateLimited
	}
	known := &v.limit
	if known.by != nil {
		switch {
		case d.OK && (!known.ok || d.Remaining >= known.left):
			return
		case !d.OK && !known.ok && (known.never || !d.Never && d.Wait <= known.wait):
			return
		}
	}
	*known = verdict{
		by: l, ok: d.OK, never: d.Never, source: d.Source,
		left: d.Remaining, wait: d.Wait, reset: d.Reset, policy: d.Policy,
	}
}

// settle refuses if any limit did, unless they are in shadow.
func (v *visit) settle() bool {
	v.permit.source = v.limit.source
	if v.limit.by == nil || v.limit.ok {
		return true
	}
	for i := range limits {
		v.permit.taken.undo(v.now, i)
	}
	v.address.Undo(v.now)
	reason := v.limit.refusal()
	if v.Shadow&ShadowRate != 0 {
		v.permit.shadow, v.limit = reason, verdict{}
		return true
	}
	if reason != shed.Never {
		v.retryAfter = v.limit.wait
	}
	return v.refuse(reason)
}

func (d *verdict) refusal() shed.Reason {
	switch {
	case d.source == ratelimit.SourceClosed:
		return shed.StoreClosed
	case d.never:
		return shed.Never
	}
	return shed.RateLimited
}

// unspent gives the long quota back when capacity refused, unless the client left
// or asked for the impossible. A token of the rate stays spent: attempts count.
func (v *visit) unspent() {
	if v.reason != shed.ClientGone && v.reason != shed.Hopeless {
		v.permit.taken.undo(v.now, byQuota)
	}
}

// withinAddress asks the limit that comes before the caller is known.
func (v *visit) withinAddress(ctx context.Context, address string) bool {
	v.permit.taken.key = ratelimit.Key{Space: spaceAddr, ID: address}
	v.address = v.Address.Take(ctx, v.now, v.permit.taken.key, 1, 0)
	if !v.address.OK {
		v.Caller = Caller{Key: address, Space: spaceAddr}
	}
	v.heard(v.Address, &v.address)
	return v.settle()
}

// advertise tells the client about the limit that refused it, or about the one
// nearest exhaustion. Limits in shadow are not told: nobody enforces them.
func (v *visit) advertise(h http.Header) {
	if v.Headers != 0 && v.limit.by != nil {
		v.Headers.write(h, v.limit.by.Policy(v.permit.taken.key), v.limit.left, v.limit.reset)
	}
}
