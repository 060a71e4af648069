// Package oracle judges scenarios independently of the code under test.
package oracle

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

// Worst returns by how much the busiest window of at exceeds burst + rate·window,
// in calls: an oracle that looks at every window that starts and ends with a call.
func Worst(at []time.Time, r rate.Limit, burst int) float64 {
	slices.SortFunc(at, time.Time.Compare)
	excess := 0.0
	for i := range at {
		for j := i; j < len(at); j++ {
			allowed := float64(burst) + float64(r)*at[j].Sub(at[i]).Seconds()
			excess = max(excess, float64(j-i+1)-allowed)
		}
	}
	return excess
}
