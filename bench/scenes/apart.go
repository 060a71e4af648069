package scenes

import (
	"sort"
	"time"
)

// apart is how many processes decided by their share while others shared the ceiling: k
// of N add R·k/N to it for as long as that lasts. While none does, or all do, nothing is
// added.
type apart struct {
	at  []time.Duration // of each look
	sum []float64       // k/N up to there, in seconds
	k   int             // at the last look
}

// add takes in that k processes did not share at t. A change counts from the look before.
func (a *apart) add(t time.Duration, k int) {
	if k == processes {
		k = 0
	}
	sum, last := 0.0, t
	if n := len(a.at); n > 0 {
		sum, last = a.sum[n-1], a.at[n-1]
	}
	a.at = append(a.at, t)
	a.sum = append(a.sum, sum+float64(max(k, a.k))/processes*(t-last).Seconds())
	a.k = k
}

// upTo returns the seconds of the rate that are added up to t.
func (a *apart) upTo(t time.Duration) float64 {
	i := sort.Search(len(a.at), func(i int) bool { return a.at[i] >= t })
	switch {
	case len(a.at) == 0 || i == 0:
		return 0
	case i == len(a.at):
		return a.sum[i-1]
	}
	part := float64(t-a.at[i-1]) / float64(a.at[i]-a.at[i-1])
	return a.sum[i-1] + part*(a.sum[i]-a.sum[i-1])
}
