package shed

import "math"

// learn keeps the capacity as the mean of what was measured lately. When it has
// clearly changed, everything else that was known is void.
func (c *climb) learn(r reading) {
	capacity, same := blend(c.capacity, r.rate, r.ended())
	if !same {
		c.forget()
	}
	c.capacity = capacity
}

// blend follows a rate: it averages a reading of n samples in, unless that is so
// far off that it has to be another rate. A mean of nothing is the reading.
func blend(mean, reading float64, n int) (float64, bool) {
	if mean == 0 {
		return reading, true
	}
	if math.Abs(math.Log(reading/mean)) > newRegime+2*chance(n) {
		return reading, false
	}
	return mean + (reading-mean)*float64(n)/float64(n+memory), true
}

// chance is one standard deviation of the logarithm of a rate of n samples, for
// work that varies as much as work does.
func chance(n int) float64 { return 0.35 / math.Sqrt(float64(max(n, 1))) }

// elasticity is the share of a change of concurrency, from n to m, that came back
// as a change of throughput, from x to y: Δln X / Δln N.
func elasticity(n, x, m, y float64) float64 {
	d := math.Log(m / n)
	if !(math.Abs(d) > 0.02) || !(x > 0 && y > 0) {
		return 0
	}
	return math.Log(y/x) / d
}
