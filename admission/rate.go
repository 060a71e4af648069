package admission

import (
	"context"
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
	from [limits]ratelimit.Undoer // nil: nothing taken
	mark [limits]uint64
	key  ratelimit.Key
	cost int
	at   time.Time
}

func (rs *receipts) grant(i int) ratelimit.Grant {
	return ratelimit.Grant{From: rs.from[i], Key: rs.key, Cost: rs.cost, At: rs.at, Mark: rs.mark[i]}
}

// undo returns what one limit granted.
func (rs *receipts) undo(now time.Time, i int) {
	if rs.from[i] != nil {
		rs.from[i].Undo(now, rs.grant(i))
		rs.from[i] = nil
	}
}

// answerOf is the part of a decision that the client and the observer hear of.
type answerOf struct {
	asked  bool // somebody was
	ok     bool
	never  bool
	source ratelimit.Source
	left   int
	wait   time.Duration
	policy string
}

// withinRate asks every limit that applies, all or nothing: a refusal returns what
// the others had granted and carries the longest wait of those that refused.
func (v *visit) withinRate(ctx context.Context) bool {
	if v.free {
		return true
	}
	rs := &v.permit.taken
	rs.key, rs.cost, rs.at = v.Caller.limitKey(), max(v.Cost, 1), v.now
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
	if d.OK {
		rs.from[i], rs.mark[i] = d.Grant.From, d.Grant.Mark
	}
	v.heard(&d)
}

// heard keeps the answer that tells the caller most: a refusal rather than a
// grant, the longest of several refusals, the scarcest of several grants.
func (v *visit) heard(d *ratelimit.Decision) {
	known := &v.limit
	if known.asked {
		switch {
		case d.OK && (!known.ok || d.Remaining >= known.left):
			return
		case !d.OK && !known.ok && (known.never || !d.Never && d.Wait <= known.wait):
			return
		}
	}
	*known = answerOf{
		asked: true, ok: d.OK, never: d.Never, source: d.Source,
		left: d.Remaining, wait: d.Wait, policy: d.Policy,
	}
}

// settle refuses if any limit did.
func (v *visit) settle() bool {
	v.permit.source = v.limit.source
	if !v.limit.asked || v.limit.ok {
		return true
	}
	for i := range limits {
		v.permit.taken.undo(v.now, i)
	}
	v.address.Undo(v.now)
	v.retryAfter = v.limit.wait
	switch {
	case v.limit.source == ratelimit.SourceClosed:
		return v.refuse(shed.StoreClosed)
	case v.limit.never:
		return v.refuse(shed.Never)
	}
	return v.refuse(shed.RateLimited)
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
	v.address = v.Address.Take(ctx, v.now, ratelimit.Key{Space: spaceAddr, ID: address}, 1, 0)
	if v.address.OK {
		return true
	}
	v.heard(&v.address)
	return v.settle()
}

// own returns l with balances of its own, or with those of prev where l is of the
// same kind. Limiters whose state is elsewhere are used as they are.
func own(l, prev ratelimit.Limiter) ratelimit.Limiter {
	if o, ok := l.(ratelimit.Owner); ok {
		return o.Own(prev)
	}
	return l
}
