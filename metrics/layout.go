package metrics

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"time"
)

// A native histogram of schema s has 2^s buckets to every doubling; bucket k ends
// at 2^(k/2^s) seconds. These cover 1 ns to a day and a half.
const (
	nativeSchema = 3
	perDoubling  = 1 << nativeSchema
	nativeLeast  = -30 * perDoubling
	nativeMost   = 17 * perDoubling
)

// layout divides durations into cells by the bounds of native and classic buckets.
// The first cell is for zero, the last has no bound.
type layout struct {
	bounds  []float64 // of the classic buckets, in seconds
	upper   []uint64  // of each cell, in nanoseconds, inclusive
	native  []int     // the native bucket a cell is part of
	classic []int     // the classic bucket; len(bounds): above all
	first   [64 << guessBits]uint16
}

// guessBits of a duration, after its highest, say which cell to look at first.
const guessBits = 4

func newLayout(bounds []float64) *layout {
	l := &layout{bounds: bounds}
	var native, classic []uint64
	for k := nativeLeast; k <= nativeMost; k++ {
		native = append(native, uint64(math.Exp2(float64(k)/perDoubling)*float64(time.Second)))
	}
	for _, b := range bounds {
		classic = append(classic, uint64(math.Round(b*float64(time.Second))))
	}
	l.upper = slices.Concat([]uint64{0, math.MaxUint64}, native, classic)
	slices.Sort(l.upper)
	l.upper = slices.Compact(l.upper)
	for _, u := range l.upper {
		l.native = append(l.native, nativeLeast+search(native, u))
		l.classic = append(l.classic, search(classic, u))
	}
	for i := range l.first {
		l.first[i] = uint16(search(l.upper, leastGuessed(i)))
	}
	return l
}

// search returns the first that is not below u.
func search(ascending []uint64, u uint64) int {
	return sort.Search(len(ascending), func(i int) bool { return ascending[i] >= u })
}

// cell returns where d belongs; d is not negative.
func (l *layout) cell(d time.Duration) int {
	u := uint64(d)
	i := int(l.first[guess(u)])
	for u > l.upper[i] {
		i++
	}
	return i
}

// guess numbers u by its length and its highest bits, in ascending order.
func guess(u uint64) int {
	n := bits.Len64(u)
	normal := u << (64 - n)
	return n<<guessBits | int(normal>>(63-guessBits)&(1<<guessBits-1))
}

// leastGuessed returns a number no greater than any that guess numbers i.
func leastGuessed(i int) uint64 {
	n, high := i>>guessBits, uint64(i)&(1<<guessBits-1)
	return (1<<63 | high<<(63-guessBits)) >> (64 - n)
}
