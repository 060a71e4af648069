package ratelimit

import (
	"context"
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Unlimited admits everybody. It is the only way to have no limit: no number
// means it by accident.
var Unlimited Limiter = unlimited{}

type unlimited struct{}

func (unlimited) Take(context.Context, time.Time, Key, int, time.Duration) Decision {
	return Decision{OK: true, Remaining: math.MaxInt}
}

func (unlimited) Policy(Key) Policy { return Policy{Rate: rate.Inf, Burst: math.MaxInt} }
func (unlimited) Validate() error   { return nil }
