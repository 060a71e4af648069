package ratelimit

import "math/bits"

// grant is a Grant in the bucket's terms.
type grant struct {
	at, cost int64
	mark     mark
}

// mark is what a grant remembers of its bucket, so that its tokens can come back as
// if they had never been taken: from high to low, 48 bits that tell when the bucket
// would have been full without it, 8 that count grants, 7 that count changes of
// terms, and whether it was the spare bucket. Of a spare bucket it knows the terms,
// in place of the two counts.
type mark uint64

const (
	markOverflow = 1
	markMoves    = 0x7f
	markTerms    = 0x7fff
	markGrants   = 0xff
	markRange    = 48
	// A grant undone within this time, 19.5 hours, comes back exactly.
	markSpan = int64(1) << (markRange - 2)
)

// mark is made after a grant; full is the time it would have taken to fill before.
func (b *bucket) mark(full int64) mark {
	span := uint64(min(full, markSpan-1)) + b.given
	return mark(span<<16 | uint64(b.grants&markGrants)<<8 | uint64(b.moves&markMoves)<<1)
}

func (m mark) moves() uint16  { return uint16(m>>1) & markMoves }
func (m mark) grants() uint16 { return uint16(m>>8) & markGrants }

// overflow is m as the mark of a grant from the spare bucket of the given terms.
// Terms beyond what a mark can hold get nothing back.
func (m mark) overflow(terms uint32) mark {
	return m&^(markTerms<<1) | mark(min(terms, markTerms))<<1 | markOverflow
}

// from reports whether m is from the spare bucket of the given terms.
func (m mark) from(terms uint32) bool { return terms < markTerms && uint32(m>>1)&markTerms == terms }

// span returns the time from the grant until the bucket would have been full, had
// neither this grant been made nor those before it that were given back since.
func (m mark) span(given uint64) int64 {
	const unused = 64 - markRange
	return int64((uint64(m)>>16-given)<<unused) >> unused
}

// giveBack returns n of a grant's tokens to a refilled bucket, as if they had never
// been taken: less what a bucket that held them would have lost since by being full,
// or the same tokens could be used twice within one refill. Where the exact loss
// would need a history of the bucket, the bound used here errs against the caller:
// only near a full bucket, and only when grants are undone neither first nor last.
func (b *bucket) giveBack(p *pace, g grant, n int64) {
	if g.mark.moves() == b.moves&markMoves {
		b.restore(p, g, n, b.latest(g))
	}
}

// restore is giveBack for a grant that is known to be of this bucket.
func (b *bucket) restore(p *pace, g grant, n int64, latest bool) {
	tokens, part := p.kept(g.cost, n, max(b.last, b.until)-g.at-g.mark.span(b.given))
	if latest {
		b.grants--
	} else {
		b.note(p, tokens, part)
	}
	b.add(p, tokens, part)
}

// latest reports whether no grant came after g. When in doubt it says no.
func (b *bucket) latest(g grant) bool {
	return b.until == g.at && b.grants&markGrants == g.mark.grants()
}

// note lets the marks of grants made since the one given back know that the bucket
// was fuller than they thought. Those made before suffer without need; telling them
// apart would take a history.
func (b *bucket) note(p *pace, tokens int64, part uint64) {
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
	before := b.given
	b.given += ns
	if b.given/uint64(markSpan) != before/uint64(markSpan) {
		b.moves++
	}
}

// kept returns how many of n tokens, out of a grant of cost, a bucket still has that
// has been full for over nanoseconds.
func (p *pace) kept(cost, n, over int64) (tokens int64, part uint64) {
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

func (b *bucket) add(p *pace, tokens int64, part uint64) {
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
