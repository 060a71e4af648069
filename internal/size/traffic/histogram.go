package traffic

import (
	"math"
	"time"
)

// Histogram counts durations in buckets that are 5 % wide, from 10 µs to a day.
type Histogram struct {
	n       uint64
	sum     float64 // nanoseconds: a million requests of a day each are more than a Duration holds
	most    time.Duration
	buckets [histogramBuckets]uint32
}

const (
	histogramLeast   = 10 * time.Microsecond
	histogramStep    = 1.05
	histogramBuckets = 480
)

// Add counts d.
func (h *Histogram) Add(d time.Duration) {
	i := 0
	if d > histogramLeast {
		i = int(math.Log(float64(d)/float64(histogramLeast))/math.Log(histogramStep)) + 1
	}
	h.buckets[min(i, histogramBuckets-1)]++
	h.n++
	h.sum += float64(d)
	h.most = max(h.most, d)
}

// Count returns how many there are.
func (h *Histogram) Count() uint64 { return h.n }

// Seconds returns the sum of all durations.
func (h *Histogram) Seconds() float64 { return h.sum / float64(time.Second) }

// Most returns the longest of them.
func (h *Histogram) Most() time.Duration { return h.most }

// Mean returns the exact mean, zero when there is nothing.
func (h *Histogram) Mean() time.Duration {
	if h.n == 0 {
		return 0
	}
	return time.Duration(h.sum / float64(h.n))
}

// Quantile returns a duration that the part q of them does not exceed, to within
// the 5 % of a bucket; zero when there is nothing.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank, seen := uint64(math.Ceil(q*float64(h.n))), uint64(0)
	for i, n := range h.buckets {
		if seen += uint64(n); seen >= max(rank, 1) {
			return min(time.Duration(float64(histogramLeast)*math.Pow(histogramStep, float64(i)-0.5)), h.most)
		}
	}
	return longest
}

const longest = 24 * time.Hour
