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

// Lister is implemented by limits made of several.
type Lister interface {
	// AppendPolicies appends the policies in force for key to dst, in the order
	// in which they are tested. Limits in shadow are left out.
	AppendPolicies(dst []Policy, key Key) []Policy
}

// AppendPolicies appends the policies that l enforces on key to dst: all of them
// when l is made of several limits, none when it is unlimited.
func AppendPolicies(dst []Policy, l Limiter, key Key) []Policy {
	if many, ok := l.(Lister); ok {
		return many.AppendPolicies(dst, key)
	}
	if p := l.Policy(key); !p.Unlimited() {
		dst = append(dst, p)
	}
	return dst
}
