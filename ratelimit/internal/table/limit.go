package table

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"golang.org/x/time/rate"
)

// Limit is a rate and a burst as whole numbers. A token is made of `token` units
// and a nanosecond brings `gain` of them, so that a balance never sees a rounded
// float: advice followed to the nanosecond is admitted, and nothing drifts.
type Limit struct {
	token uint64 // units in one token, at least 1
	gain  uint64 // units per nanosecond; 0 never refills
	burst int64  // tokens in a full bucket
}

// The rates a bucket can keep: about one token in 31 years, and a petabyte a
// second for limits that count bytes. Inside them no arithmetic here overflows.
const (
	minRate rate.Limit = 1e-9
	maxRate rate.Limit = 1e15
)

// forever is the longest wait that is told apart from a longer one: 146 years. The
// table's clock stays within a quarter of it on either side of its zero, so that
// sums and differences of instants and waits fit an int64.
const forever = int64(1) << 62

// NewLimit returns limit tokens per second and the given burst as whole numbers.
func NewLimit(limit rate.Limit, burst int) (Limit, error) {
	if err := CheckRate(limit); err != nil {
		return Limit{}, err
	}
	if burst < 1 {
		return Limit{}, fmt.Errorf("burst is %d, must be at least 1", burst)
	}
	token, gain := fraction(float64(limit))
	return Limit{token: token, gain: gain, burst: int64(burst)}, nil
}

// CheckRate reports why a bucket cannot keep limit.
func CheckRate(limit rate.Limit) error {
	switch {
	case math.IsNaN(float64(limit)):
		return errors.New("rate is NaN")
	case math.IsInf(float64(limit), 0), limit == rate.Inf:
		return errors.New("rate is infinite; say ratelimit.Unlimited where no limit is meant")
	case limit < 0:
		return fmt.Errorf("rate is %v, must not be negative", limit)
	case limit > maxRate:
		return fmt.Errorf("rate is %v per second, must be at most %v", limit, maxRate)
	case limit > 0 && limit < minRate:
		return fmt.Errorf("rate is %v per second, must be 0 or at least %v", limit, minRate)
	}
	return nil
}

// fraction writes perSecond as gain units per nanosecond of a token's units, with
// the smallest whole numbers that a float64 this close can have meant: 3.0/86400
// becomes 1 in 28,800,000,000,000.
func fraction(perSecond float64) (token, gain uint64) {
	if perSecond == 0 {
		return 1, 0
	}
	perNano := new(big.Rat).SetFloat64(perSecond)
	perNano.Quo(perNano, big.NewRat(1e9, 1))
	// 2⁻⁵¹ covers the two roundings of 1/d.Seconds(), which rate.Every does.
	slack := new(big.Rat).Mul(perNano, big.NewRat(1, 1<<51))
	low, high := new(big.Rat).Sub(perNano, slack), new(big.Rat).Add(perNano, slack)
	num, den := simplest(low, high)
	return den.Uint64(), num.Uint64()
}

// simplest returns the fraction with the smallest terms in [low, high], both
// positive, by walking their common continued fraction.
func simplest(low, high *big.Rat) (num, den *big.Int) {
	whole, rest := new(big.Int).QuoRem(low.Num(), low.Denom(), new(big.Int))
	if rest.Sign() == 0 {
		return whole, big.NewInt(1)
	}
	next := new(big.Int).Add(whole, big.NewInt(1))
	if high.Cmp(new(big.Rat).SetInt(next)) >= 0 {
		return next, big.NewInt(1)
	}
	base := new(big.Rat).SetInt(whole)
	lo, hi := new(big.Rat).Sub(low, base), new(big.Rat).Sub(high, base)
	den, num = simplest(hi.Inv(hi), lo.Inv(lo))
	return num.Add(num, whole.Mul(whole, den)), den
}

// earned returns what elapsed nanoseconds add to part: whole tokens and the units
// left over. Past 2⁶⁴ tokens it says so with full.
func (p *Limit) earned(elapsed int64, part uint64) (tokens, rest uint64, full bool) {
	hi, lo := bits.Mul64(uint64(elapsed), p.gain)
	lo, carry := bits.Add64(lo, part, 0)
	hi += carry
	if hi == 0 && lo < p.token {
		return 0, lo, false
	}
	if hi >= p.token {
		return 0, 0, true
	}
	tokens, rest = bits.Div64(hi, lo, p.token)
	return tokens, rest, false
}

// span returns the nanoseconds that bring tokens, less the part already there,
// rounded down, and whether that rounding lost anything. It is at most forever.
func (p *Limit) span(tokens, part uint64) (ns int64, inexact bool) {
	if p.gain == 0 {
		return forever, false
	}
	hi, lo := bits.Mul64(tokens, p.token)
	lo, borrow := bits.Sub64(lo, part, 0)
	hi -= borrow
	if hi >= p.gain {
		return forever, false
	}
	rest := uint64(0)
	if p.gain != 1 {
		lo, rest = bits.Div64(hi, lo, p.gain)
	}
	if lo >= uint64(forever) {
		return forever, false
	}
	return int64(lo), rest > 0
}
