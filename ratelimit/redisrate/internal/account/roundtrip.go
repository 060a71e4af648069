package account

import (
	"sync/atomic"
	"time"
)

// RoundTrip measures how long the store takes to answer. It is safe for concurrent
// use; samples that race may be lost.
type RoundTrip struct {
	smooth  atomic.Int64 // nanoseconds; 0 until the first answer
	samples atomic.Int64
}

const (
	// The first answers include dialling and sending scripts, so the least of them counts.
	firstSamples = 4
	// One answer that is late by far says little about the next.
	maxStep = 4
)

// Observe takes in the time that an answered call took.
func (r *RoundTrip) Observe(d time.Duration) {
	s := time.Duration(r.smooth.Load())
	switch n := r.samples.Add(1); {
	case s == 0 || n <= firstSamples && d < s:
		s = d
	case n > firstSamples:
		s += (min(d, maxStep*s+time.Millisecond) - s) / 8
	}
	r.smooth.Store(int64(max(1, s)))
}

// Value returns the smoothed round trip; 0 means that nothing is known.
func (r *RoundTrip) Value() time.Duration { return time.Duration(r.smooth.Load()) }

// A request waits for an answer up to 1.5 round trips, within these bounds. Before
// the first answer a connection must be made, which takes several.
const (
	minPatience   = 20 * time.Millisecond
	maxPatience   = 250 * time.Millisecond
	FirstPatience = 100 * time.Millisecond
)

// Patience returns how long a request waits for an answer.
func (r *RoundTrip) Patience() time.Duration {
	trip := r.Value()
	if trip == 0 {
		return FirstPatience
	}
	return min(max(trip*3/2, minPatience), maxPatience)
}

// A store is silent when nothing came back for four round trips: calls that are
// out for less are late.
const (
	silentTrips = 4
	minSilence  = 100 * time.Millisecond
)

// Silence returns how long a call is out before the store counts as silent.
func (r *RoundTrip) Silence() time.Duration {
	trip := r.Value()
	if trip == 0 {
		return maxPatience
	}
	return max(silentTrips*trip, minSilence)
}
