package table

import (
	"math"
	"math/bits"
	"time"
)

// bucket is a token bucket in 48 bytes: a balance and the instant it was true. It
// is plain data under its shard's lock. Between instants the balance rises by the
// limit's gain up to its burst; a clock that goes back brings nothing.
type bucket struct {
	tokens int64  // whole tokens; below zero what reservations and later charges owe
	part   uint64 // units towards the next token
	last   int64  // the instant of the balance, in nanoseconds of the table's clock
	until  int64  // when the last grant's tokens are used, or its reservation matures
	ring   Mark   // what the marks of grants are made from, and held against
	terms  uint32 // index of the terms it lives under
	era    era    // grants from earlier ones are worth nothing
}

// maxLate is how far calls may overtake each other between reading the clock and
// reaching a bucket. An instant further back is that of a clock that was set right.
const maxLate = int64(5 * time.Minute)

// refill brings the balance to now.
func (b *bucket) refill(p *Limit, now int64) {
	elapsed := now - b.last
	if elapsed <= 0 {
		if elapsed < -maxLate {
			b.rewind(now)
		}
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

// rewind goes on from now with the balance as it is, when the clock was ahead before:
// the bucket must not stand still until the time that was wrong.
func (b *bucket) rewind(now int64) {
	b.last, b.until = now, now
	b.move()
}

func (b *bucket) fill(p *Limit) { b.tokens, b.part = p.burst, 0 }

// take asks a refilled bucket for cost tokens, at least 1, now or within maxWait,
// and writes the answer into a: passing it back by value costs more than the rest.
func (b *bucket) take(p *Limit, now, cost, maxWait int64, a *Answer) {
	late := max(b.last-now, 0)
	wait, ok := b.wait(p, cost)
	switch {
	case !ok || cost > p.burst:
		a.Never = true
	case wait == 0:
		b.grant(p, cost, late, 0, a)
	case wait+late > maxWait || wait == forever || b.tokens < cost-math.MaxInt64:
		a.Wait = time.Duration(min(wait+late, forever))
		a.Reset = a.Wait
	default:
		a.Wait = time.Duration(wait + late)
		b.grant(p, cost, late, wait, a)
	}
	a.Left = clampInt(max(b.tokens, 0))
}

// wait returns the time from the bucket's instant until it holds cost tokens, and
// false when it never will.
func (b *bucket) wait(p *Limit, cost int64) (int64, bool) {
	if b.tokens >= cost {
		return 0, true
	}
	ns, inexact := p.span(uint64(cost)-uint64(b.tokens), b.part)
	if inexact {
		ns++
	}
	return ns, p.gain > 0
}

func (b *bucket) grant(p *Limit, cost, late, wait int64, a *Answer) {
	full, _ := p.span(uint64(p.burst)-uint64(b.tokens), b.part)
	full = min(full+late, forever)
	back, _ := p.span(uint64(cost), 0)
	b.tokens -= cost
	b.until = max(b.until, b.last+wait)
	b.ring = b.ring.granted(1)
	a.OK = true
	a.Reset = time.Duration(min(full+back, forever))
	a.Mark = b.ring + Mark(min(full, markSpan-1))<<markShift
}

// full reports whether the bucket would be full at now with nothing owed, so that
// a new one could stand in for it.
func (b *bucket) full(p *Limit, now int64) bool {
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

// Grant is what is remembered of tokens taken.
type Grant struct {
	At, Cost int64
	Mark     Mark
}

// Mark is what a grant remembers of its bucket, so that its tokens can come back as
// if they had never been taken: from high to low, 48 bits that tell when the bucket
// would have been full without it, 8 that count grants, 7 that count changes of
// terms, and whether it was the spare bucket. Of a spare bucket it knows the terms,
// in place of the two counts.
//
// A bucket's ring has the same parts: the nanoseconds of refill given back out of
// order, in all; grants, less those undone while they were the latest; and how often
// the terms changed. Each part goes round by itself.
type Mark uint64

const (
	markOverflow = 1
	markTerms    = 0xfffe
	markMoves    = 0x00fe
	markGrants   = 0xff00
	markShift    = 16
	// A grant undone within this time, 19.5 hours, comes back exactly.
	markSpan = int64(1) << (64 - markShift - 2)
)

// granted counts n more grants.
func (m Mark) granted(n int) Mark {
	return m&^markGrants | (m+Mark(n<<8))&markGrants
}

// overflow is m as the mark of a grant from the spare bucket of the given terms.
// Terms beyond what a mark can hold get nothing back.
func (m Mark) overflow(terms uint32) Mark {
	return m&^markTerms | Mark(min(terms, markTerms>>1))<<1 | markOverflow
}

// from reports whether m is from the spare bucket of the given terms.
func (m Mark) from(terms uint32) bool {
	return terms < markTerms>>1 && uint32(m&markTerms)>>1 == terms
}

// span returns the time from the grant until the bucket would have been full, had
// neither this grant been made nor those before it that were given back since.
func (m Mark) span(ring Mark) int64 {
	return int64(m&^0xffff-ring&^0xffff) >> markShift
}

// era is a time on the table's clock in units of 2²⁹ ns, about half a second.
type era int32

func eraOf(at int64) era { return era(at >> 29) }

// born is the first era of a new bucket: grants to an earlier one of the same key are
// over a grace older, and calls that are late are not.
func born(now int64) era { return eraOf(now-grace) + 1 }

// move ends what grants so far are worth, as the terms change. Marks tell 128 moves
// apart; when they have gone round, the bucket itself remembers the time.
func (b *bucket) move() {
	b.ring = b.ring&^markMoves | (b.ring+2)&markMoves
	if b.ring&markMoves == 0 {
		b.era = eraOf(b.last) + 1
	}
}

// giveBack returns n of a grant's tokens to a refilled bucket, as if they had never
// been taken: less what a bucket that held them would have lost since by being full,
// or the same tokens could be used twice within one refill. Where the exact loss
// would need a history of the bucket, the bound used here errs against the caller:
// only near a full bucket, and only when grants are undone neither first nor last.
func (b *bucket) giveBack(p *Limit, g Grant, n int64) {
	if (g.Mark^b.ring)&markMoves == 0 && eraOf(g.At) >= b.era {
		b.restore(p, g, n, b.latest(g))
	}
}

// restore is giveBack for a grant that is known to be of this bucket.
func (b *bucket) restore(p *Limit, g Grant, n int64, latest bool) {
	tokens, part := p.kept(g.Cost, n, max(b.last, b.until)-g.At-g.Mark.span(b.ring))
	if latest {
		b.ring = b.ring.granted(-1)
	} else {
		b.note(p, tokens, part)
	}
	b.add(p, tokens, part)
}

// latest reports whether no grant came after g. When in doubt it says no.
func (b *bucket) latest(g Grant) bool {
	return b.until == g.At && (b.ring^g.Mark)&markGrants == 0
}

// note lets the marks of grants made since the one given back know that the bucket
// was fuller than they thought. Those made before suffer without need; telling them
// apart would take a history.
func (b *bucket) note(p *Limit, tokens int64, part uint64) {
	if p.gain == 0 {
		return // without a refill no token is ever lost
	}
	hi, lo := bits.Mul64(uint64(tokens), p.token)
	lo, carry := bits.Add64(lo, part, 0)
	hi += carry
	// Rounded up; beyond a mark's range no mark is good for anything any more.
	ns := uint64(markSpan)
	if hi < p.gain {
		if q, rest := bits.Div64(hi, lo, p.gain); q < ns {
			ns = q + min(rest, 1)
		}
	}
	before := b.ring
	b.ring += Mark(ns) << markShift
	if (before^b.ring)>>(64-2) != 0 { // a quarter round: further, old marks would read as new ones
		b.move()
	}
}

// kept returns how many of n tokens, out of a grant of cost, a bucket still has that
// has been full for over nanoseconds.
func (p *Limit) kept(cost, n, over int64) (tokens int64, part uint64) {
	if over <= 0 {
		return n, 0
	}
	lost, rest, all := p.earned(over, 0)
	if all || lost >= uint64(cost) {
		return 0, 0
	}
	tokens = cost - int64(lost)
	if rest > 0 {
		tokens, part = tokens-1, p.token-rest
	}
	if tokens >= n {
		return n, 0
	}
	return tokens, part
}

func (b *bucket) add(p *Limit, tokens int64, part uint64) {
	part += b.part
	if part >= p.token {
		part, tokens = part-p.token, tokens+1
	}
	if b.tokens >= p.burst-tokens {
		b.fill(p)
		return
	}
	b.tokens, b.part = b.tokens+tokens, part
}
