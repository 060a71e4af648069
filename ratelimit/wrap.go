package ratelimit

import (
	"fmt"
	"math"
	"time"
)

// What a limiter around another needs to ask of it, whatever it can do.

// within is a grant seen from the limiter that a wrapper holds.
func within(inner Limiter, g Grant) Decision {
	g.From, _ = inner.(Undoer)
	return Decision{OK: true, Grant: g}
}

func peek(inner Limiter, now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	if p, ok := inner.(Peeker); ok {
		return p.Peek(now, key, cost, maxWait)
	}
	return Decision{OK: true, Remaining: math.MaxInt}
}

func planOf(inner Limiter, key Key) Plan {
	if p, ok := inner.(Planner); ok {
		return p.PlanOf(key)
	}
	return Plan{}
}

func validate(wrapper string, inner Limiter) error {
	if inner == nil {
		return fmt.Errorf("ratelimit: %s: the limiter is nil", wrapper)
	}
	return inner.Validate()
}
