package ratelimit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Policy is what a limit promises: the numbers that documentation, headers and
// dashboards show.
type Policy struct {
	Name   string
	Rate   rate.Limit    // tokens per second; rate.Inf when unlimited
	Burst  int           // most tokens at once
	Window time.Duration // for quotas per window; zero for buckets: Burst/Rate
	Unit   string        // what it counts; empty: requests
}

// Unlimited reports whether the policy limits nothing and needs no header.
func (p Policy) Unlimited() bool { return p.Rate == rate.Inf }

// Quota states the policy as tokens per whole seconds, as the RateLimit-Policy
// field wants it (q and w). For a bucket that is the burst in the time it takes to
// fill, rounded up: a client that paces itself by it stays within the limit. The
// period is at least a second; it is zero when nothing ever comes back.
func (p Policy) Quota() (tokens int, per time.Duration) {
	seconds := p.Window.Seconds()
	if p.Window == 0 {
		seconds = float64(p.Burst) / float64(p.Rate)
	}
	// Rounding of Burst/Rate must not push a whole number of seconds to the next.
	seconds = max(math.Ceil(seconds*(1-1e-12)), 1)
	switch {
	case p.Rate == 0 && p.Window == 0:
		return p.Burst, 0
	case seconds > math.MaxInt64/float64(time.Second)/2:
		seconds = math.Floor(math.MaxInt64 / float64(time.Second) / 2)
	}
	return p.Burst, time.Duration(seconds) * time.Second
}

// Source says what a decision was based on.
type Source uint8

// The sources. In memory all decisions are Local.
const (
	SourceLocal       Source = iota // a bucket in this process, the whole truth
	SourceOverflow                  // the strict bucket that newcomers share when the table is full
	SourceSlot                      // a slot leased from the shared ceiling
	SourceDirect                    // one call to the shared ceiling
	SourceDenialCache               // refused from the store's last hint, without a call
	SourceShare                     // this process' share while the store is away
	SourceOpen                      // let through because the store is away
	SourceClosed                    // refused because the store is away
)

// SourceCount is the number of sources, for arrays indexed by Source.
const SourceCount = int(SourceClosed) + 1

var sourceNames = [SourceCount]string{
	"local", "overflow", "slot", "direct", "denial-cache", "share", "open", "closed",
}

// String returns the source's name in metrics and logs.
func (s Source) String() string {
	if int(s) >= SourceCount {
		return "unknown"
	}
	return sourceNames[s]
}

// Fail says what happens to requests while the store that counts them does not answer.
type Fail uint8

// The policies for an outage of a store.
const (
	FailShare  Fail = iota // each process decides alone, by its part of the limit; the default
	FailOpen               // everything is let through
	FailClosed             // everything is refused
)

// String returns the policy's name in logs.
func (f Fail) String() string {
	switch f {
	case FailShare:
		return "share"
	case FailOpen:
		return "open"
	case FailClosed:
		return "closed"
	}
	return "unknown"
}
