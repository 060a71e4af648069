package outbound

import (
	"math/rand/v2"
	"time"
)

// backoff is how long to wait before the next attempt when the server did not say.
//
// It is full jitter: a uniform draw up to base·2^(n−1), capped before the draw, on
// top of a small floor that even a lucky draw and a Retry-After of zero respect.
// The base depends on what went wrong: a lost connection is worth another try soon,
// a throttle is not, and a gate that sheds load says so on behalf of everybody.
type backoff struct {
	floor, ceiling time.Duration
	base           [KindCount]time.Duration
	shed           time.Duration // base for an overload that a Headgate gate reported
}

const (
	defaultMinBackoff = 10 * time.Millisecond
	defaultMaxBackoff = 20 * time.Second

	baseTransient = 50 * time.Millisecond
	baseConflict  = 50 * time.Millisecond
	baseOverload  = 500 * time.Millisecond
	baseThrottle  = time.Second
	baseShed      = 2 * time.Second
)

func newBackoff(floor, ceiling time.Duration) backoff {
	return backoff{
		floor: floor, ceiling: ceiling, shed: baseShed,
		base: [KindCount]time.Duration{
			Throttled: baseThrottle, Overloaded: baseOverload,
			Conflict: baseConflict, Transient: baseTransient,
		},
	}
}

// delay returns the wait after the n-th attempt, which ended in v. A hint is never
// shortened, and spread upwards only.
func (b *backoff) delay(v Verdict, n int) time.Duration {
	d := b.floor + full(b.limit(v, n))
	if v.Hinted {
		d = max(d, v.Hint+jitter(v.Hint))
	}
	return d
}

// limit returns the longest backoff after the n-th attempt.
func (b *backoff) limit(v Verdict, n int) time.Duration {
	base := b.base[v.Kind]
	if v.Kind == Overloaded && v.Reason.Refused() {
		base = b.shed
	}
	for ; n > 1 && base < b.ceiling; n-- {
		base *= 2
	}
	return min(base, b.ceiling)
}

// full draws from [0, limit).
func full(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return rand.N(limit)
}
