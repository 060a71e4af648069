package accounttest

import (
	"slices"
	"time"
)

// Excess is the most that any window let through above burst + rate·length: the
// deepest fall of a bucket that everything admitted is taken from.
func Excess(admitted []time.Duration, r float64, burst int) float64 {
	admitted = slices.Sorted(slices.Values(admitted))
	level, worst, last := float64(burst), 0.0, time.Duration(0)
	for _, at := range admitted {
		level = min(float64(burst), level+(at-last).Seconds()*r) - 1
		last = at
		worst = min(worst, level)
	}
	return -worst
}
