package window

import (
	"math"
	"math/bits"
	"time"
)

// usage is what one key has used: the cost admitted in the current window and in
// the one before, and how far the current one has come.
type usage struct {
	now, before int64
	elapsed     time.Duration
}

// fits reports whether cost more stays within quota. All in whole numbers, so that
// a wait worked out by [usage.wait] is never a nanosecond short.
func (u usage) fits(quota, cost int64, length time.Duration) bool {
	room := quota - u.now - cost
	if room < 0 {
		return false
	}
	return !more(uint64(u.before), uint64(length-u.elapsed), uint64(room), uint64(length))
}

// more reports whether a·b > c·d.
func more(a, b, c, d uint64) bool {
	hi1, lo1 := bits.Mul64(a, b)
	hi2, lo2 := bits.Mul64(c, d)
	return hi1 > hi2 || hi1 == hi2 && lo1 > lo2
}

// left returns the whole tokens left of quota, never negative.
func (u usage) left(quota int64, length time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(u.before), uint64(length-u.elapsed))
	fading, rest := bits.Div64(hi, lo, uint64(length)) // before·(a part of length): fits
	if rest > 0 {
		fading++
	}
	return max(quota-u.now-int64(min(fading, math.MaxInt64)), 0)
}

// wait returns the time until cost, at most quota, will fit if nothing else is used.
func (u usage) wait(quota, cost int64, length time.Duration) time.Duration {
	if room := quota - u.now - cost; room >= 0 {
		return faded(u.before, room, length) - u.elapsed
	}
	return length - u.elapsed + faded(u.now, quota-cost, length)
}

// faded returns how far a window must have come until what was used before it,
// fading evenly, fits into room.
func faded(before, room int64, length time.Duration) time.Duration {
	if before <= room {
		return 0
	}
	hi, lo := bits.Mul64(uint64(room), uint64(length))
	rest, _ := bits.Div64(hi, lo, uint64(before)) // room < before, so it fits
	return length - time.Duration(rest)
}
