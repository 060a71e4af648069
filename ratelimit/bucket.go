package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// bucket is a token bucket, 40 bytes: a balance and the instant it was true. It is
// plain data under its shard's lock. Between instants the balance rises by the
// pace's gain up to its burst; a clock that goes back brings nothing.
type bucket struct {
	tokens int64  // whole tokens; below zero what reservations and later charges owe
	part   uint64 // units towards the next token
	last   int64  // the instant of the balance, in nanoseconds of the table's clock
	until  int64  // when the last reservation matures
	terms  uint32 // index of the terms it lives under
	moves  uint32 // how often those changed; a grant from before is worth nothing back
}

// mark is what a grant remembers of its bucket: the nanoseconds after which it
// would have been full without the grant, above a byte of flags.
type mark uint64

const (
	markOverflow  = 1
	markMoves     = 0x7f
	markSpanLimit = int64(1)<<56 - 1 // 2.3 years
)

func newMark(span int64, moves uint32) mark {
	return mark(min(span, markSpanLimit))<<8 | mark(moves&markMoves)<<1
}

func (m mark) span() int64   { return int64(m >> 8) }
func (m mark) moves() uint32 { return uint32(m>>1) & markMoves }

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
		b.grant(p, cost, late, d)
	case wait+late > maxWait || wait == forever || b.tokens < cost-math.MaxInt64:
		d.Wait = time.Duration(min(wait+late, forever))
		d.Reset = d.Wait
	default:
		b.until = max(b.until, now+late+wait)
		d.Wait = time.Duration(wait + late)
		b.grant(p, cost, late, d)
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

func (b *bucket) grant(p *pace, cost, late int64, d *Decision) {
	full, _ := p.span(uint64(p.burst)-uint64(b.tokens), b.part)
	full = min(full+late, forever)
	back, _ := p.span(uint64(cost), 0)
	b.tokens -= cost
	d.OK = true
	d.Reset = time.Duration(min(full+back, forever))
	d.Grant.Mark = uint64(newMark(full, b.moves))
}

// full reports whether the bucket would be full at now with nothing owed, so that
// a new one could stand in for it.
func (b *bucket) full(p *pace, now int64) bool {
	if b.until > now {
		return false
	}
	if b.tokens >= p.burst {
		return true
	}
	if now <= b.last {
		return false
	}
	tokens, _, full := p.earned(now-b.last, b.part)
	return full || tokens >= uint64(p.burst)-uint64(b.tokens)
}

// grant is a Grant in the bucket's terms.
type grant struct {
	at, cost int64
	mark     mark
}

// giveBack returns n of a grant's tokens to a refilled bucket, less what a bucket that never granted them would have lost by being full: up to the
// last reservation nothing before it can be used any more. So what is returned is
// exactly what the grant withheld from those who come next, never more.
func (b *bucket) giveBack(p *pace, g grant, n int64) {
	if g.mark.moves() != b.moves&markMoves {
		return
	}
	tokens, part := n, uint64(0)
	if over := max(b.last, b.until) - (g.at + g.mark.span()); over > 0 {
		lost, rest, all := p.earned(over, 0)
		if all || lost >= uint64(g.cost) {
			return
		}
		tokens = g.cost - int64(lost)
		if rest > 0 {
			tokens, part = tokens-1, p.token-rest
		}
		if tokens >= n {
			tokens, part = n, 0
		}
	}
	b.add(p, tokens, part)
}

func (b *bucket) add(p *pace, tokens int64, part uint64) {
	sum, carry := bits.Add64(b.part, part, 0)
	if carry > 0 || sum >= p.token {
		sum, tokens = sum-p.token, tokens+1
	}
	if b.tokens >= p.burst-tokens {
		b.fill(p)
		return
	}
	b.tokens, b.part = b.tokens+tokens, sum
}

// charge takes tokens that were used after all, into debt if need be.
func (b *bucket) charge(tokens int64) {
	b.tokens = max(b.tokens, math.MinInt64/2+tokens) - tokens
}

// clampInt keeps balances readable where an int has 32 bits.
func clampInt(n int64) int { return int(min(n, math.MaxInt)) }
