package gauntlet

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// merge joins neighbouring bins until there are at most n of them. The last bin,
// which belongs to the run's end, is left out.
func merge(bins []Bin, n int) ([]Bin, time.Duration) {
	bins = bins[:len(bins)-1]
	by := (len(bins) + n - 1) / n
	by = max(by, 2) // a tenth of a second is too nervous to read
	out := make([]Bin, 0, len(bins)/by+1)
	for i := 0; i+by <= len(bins); i += by {
		var b Bin
		for _, x := range bins[i : i+by] {
			b.Limit += x.Limit / float64(by)
			b.InFlight += x.InFlight / float64(by)
			b.Depth += x.Depth / float64(by)
			b.Offered += x.Offered
			for k := range Classes {
				b.Served[k] += x.Served[k]
			}
		}
		out = append(out, b)
	}
	return out, time.Duration(by) * binWidth
}

// axisTop returns the next round number.
func axisTop(v float64) float64 {
	v = max(v, 1)
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 4, 6, 8, 10} {
		if v <= k*unit {
			return k * unit
		}
	}
	return 10 * unit
}

func peak(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Max(v)
}

func number(v float64) string {
	return strconv.FormatFloat(v, 'f', -1, 64)
}
