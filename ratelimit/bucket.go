package ratelimit

import (
	"math"
	"time"
)

// bucket is a token bucket in 48 bytes: a balance and the instant it was true. It
// is plain data under its shard's lock. Between instants the balance rises by the
// pace's gain up to its burst; a clock that goes back brings nothing.
type bucket struct {
	tokens int64  // whole tokens; below zero what reservations and later charges owe
	part   uint64 // units towards the next token
	last   int64  // the instant of the balance, in nanoseconds of the table's clock
	until  int64  // when the last grant's tokens are used, or its reservation matures
	given  uint64 // nanoseconds of refill given back out of order, all told
	terms  uint32 // index of the terms it lives under
	moves  uint16 // how often those changed; grants from before are worth nothing
	grants uint16 // counts grants, less those undone while they were the latest
}

// refill brings the balance to now.
func (b *bucket) refill(p *pace, now int64) {
	elapsed := now - b.last
	if elapsed <= 0 {
		return
	}
	b.last = now
	if b.tokens >= p.burst {
		return
	}
	tokens, part, full := p.earned(elapsed, b.part)
	if full || tokens >= uint64(p.burst)-uint64(b.tokens) {
		b.fill(p)
		return
	}
	b.tokens, b.part = b.tokens+int64(tokens), part
}

func (b *bucket) fill(p *pace) { b.tokens, b.part = p.burst, 0 }

// take asks a refilled bucket for cost tokens, at least 1, now or within maxWait,
// and writes the answer into d: passing it back by value costs more than the rest.
func (b *bucket) take(p *pace, now, cost, maxWait int64, d *Decision) {
	late := max(b.last-now, 0)
	wait, ok := b.wait(p, cost)
	switch {
	case !ok || cost > p.burst:
		d.Never = true
	case wait == 0:
		b.grant(p, cost, late, 0, d)
	case wait+late > maxWait || wait == forever || b.tokens < cost-math.MaxInt64:
		d.Wait = time.Duration(min(wait+late, forever))
		d.Reset = d.Wait
	default:
		d.Wait = time.Duration(wait + late)
		b.grant(p, cost, late, wait, d)
	}
	d.Remaining = clampInt(max(b.tokens, 0))
}

// wait returns the time from the bucket's instant until it holds cost tokens, and
// false when it never will.
func (b *bucket) wait(p *pace, cost int64) (int64, bool) {
	if b.tokens >= cost {
		return 0, true
	}
	ns, inexact := p.span(uint64(cost)-uint64(b.tokens), b.part)
	if inexact {
		ns++
	}
	return ns, p.gain > 0
}

func (b *bucket) grant(p *pace, cost, late, wait int64, d *Decision) {
	full, _ := p.span(uint64(p.burst)-uint64(b.tokens), b.part)
	full = min(full+late, forever)
	back, _ := p.span(uint64(cost), 0)
	b.tokens -= cost
	b.until = max(b.until, b.last+wait)
	b.grants++
	d.OK = true
	d.Reset = time.Duration(min(full+back, forever))
	d.Grant.Mark = uint64(b.mark(full))
}

// full reports whether the bucket would be full at now with nothing owed, so that
// a new one could stand in for it.
func (b *bucket) full(p *pace, now int64) bool {
	if b.until > now || b.last > now {
		return false
	}
	if b.tokens >= p.burst {
		return true
	}
	tokens, _, full := p.earned(now-b.last, b.part)
	return full || tokens >= uint64(p.burst)-uint64(b.tokens)
}

// charge takes tokens that were used after all, into debt if need be.
func (b *bucket) charge(tokens int64) {
	b.tokens = max(b.tokens, math.MinInt64/2+tokens) - tokens
}

// clampInt keeps balances readable where an int has 32 bits.
func clampInt(n int64) int { return int(min(n, math.MaxInt)) }
