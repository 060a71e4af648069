package size

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/headgate-go/headgate/internal/size/traffic"
)

// sizing is Little's law applied: L = λ·W.
type sizing struct {
	rate  float64       // λ, arrivals per second
	mean  time.Duration // W
	p99   time.Duration
	slots float64 // L, in flight on average
	peak  int     // not exceeded in 999 of 1000 instants
}

// little needs nothing but the rate and the mean time: the law holds whatever the
// order and the distributions. For the peaks it takes arrivals that do not know of
// each other; then the number in flight is Poisson-distributed with mean L, again
// whatever the latencies (M/G/∞).
func little(rate float64, p50, p99 time.Duration) sizing {
	s := sizing{rate: rate, mean: traffic.NewLatency(p50, p99).Mean(), p99: p99}
	s.slots = rate * s.mean.Seconds()
	s.peak = max(poissonQuantile(s.slots, 0.999), 1)
	return s
}

// poissonQuantile returns the smallest n that a Poisson variable of the given mean
// does not exceed with probability q.
func poissonQuantile(mean, q float64) int {
	if mean > 500 { // where the sum below would start from nothing
		return int(math.Ceil(mean + math.Sqrt2*math.Erfinv(2*q-1)*math.Sqrt(mean)))
	}
	term := math.Exp(-mean)
	sum, n := term, 0
	for sum < q {
		n++
		term *= mean / float64(n)
		sum += term
	}
	return n
}

// sizeNumbers prints what follows from a rate and a latency.
func sizeNumbers(w io.Writer, c *config) error {
	s := little(c.rps, c.p50, c.p99)
	fmt.Fprintf(w, "%s requests a second, each taking %v at the median and %v at the 99th percentile\n\n", plain(c.rps), c.p50, c.p99)
	fmt.Fprintf(w, "  mean latency   W = %v  (a log-normal through both)\n", short(s.mean))
	fmt.Fprintf(w, "  in flight      L = λ·W = %s/s × %v = %.1f on average, %d at ordinary peaks\n", plain(s.rate), short(s.mean), s.slots, s.peak)
	fmt.Fprintf(w, "  one slot       serves 1/W = %.1f requests a second: a count is not a rate\n\n", 1/s.mean.Seconds())
	a := s.advise(c.callers)
	a.print(w)
	return nil
}

func (s *sizing) advise(callers int) advice {
	var a advice
	a.max = 2 * s.peak
	a.limitWhy = fmt.Sprintf("%d slots hold the ordinary peaks; twice that is room for a slower backend, and the law finds the number in force", s.peak)
	a.setWait(s.p99)
	if callers == 0 {
		a.rateWhy = "policy, not capacity: -callers N says what a fair share would be"
		return a
	}
	share := s.rate / float64(callers)
	a.rate = nice(2 * share)
	a.burst = int(math.Ceil(2 * a.rate))
	a.rateWhy = fmt.Sprintf("a fair share among %d callers is %s/s; twice that, and two seconds of it at once", callers, plain(share))
	return a
}
