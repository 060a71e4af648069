package ratelimit

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit/internal/table"
)

// Plan is the numbers of one kind of caller. The zero Plan is unset: the caller gets the
// fallback. Unlimited and forbidden are said by Allow, never by a number.
//
// Cost, Level, Share and Weight are not about rates and the limiter does not read them:
// they are here so that a plan is one row of one table; the gate applies them.
type Plan struct {
	Rate  rate.Limit // tokens per second; with a burst, 0 means burst tokens ever
	Burst int        // most tokens at once, at least 1
	Allow Allow      // AllowMetered, unless everything or nothing is admitted

	Cost   int     // what each request costs more than the route says, as a factor; 0 is 1
	Level  string  // name of a priority level, "" for the route's
	Share  float64 // part of the slots in flight, in (0, 1]; 0 for no cap of its own
	Weight int     // how much slot time each caller gets beside others of its level while both wait; 0 is 1, at most 1000
}

// Allow says whether a plan's numbers count.
type Allow uint8

// What a plan allows.
const (
	AllowMetered    Allow = iota // Rate and Burst
	AllowEverything              // no limit
	AllowNothing                 // always refused, without advice to wait
)

// Unset reports whether the plan says nothing about the rate.
func (p Plan) Unset() bool { return p.Allow == AllowMetered && p.Rate == 0 && p.Burst == 0 }

// tier is a plan checked and worked out.
type tier struct {
	Plan
	table.Limit
}

const mostWeight = 1000

func newTier(p Plan) (tier, error) {
	switch {
	case p.Allow > AllowNothing:
		return tier{}, fmt.Errorf("Allow is %d, must be AllowMetered, AllowEverything or AllowNothing", p.Allow)
	case p.Allow != AllowMetered && (p.Rate != 0 || p.Burst != 0):
		return tier{}, errors.New("Rate and Burst must be zero where Allow is not Metered")
	case p.Cost < 0:
		return tier{}, fmt.Errorf("Cost is %d, must not be negative", p.Cost)
	case p.Weight < 0 || p.Weight > mostWeight:
		return tier{}, fmt.Errorf("Weight is %d, must be between 0 and %d", p.Weight, mostWeight)
	case math.IsNaN(p.Share) || p.Share < 0 || p.Share > 1:
		return tier{}, fmt.Errorf("Share is %v, must be between 0 and 1", p.Share)
	case p.Allow != AllowMetered:
		return tier{Plan: p}, nil
	}
	limit, err := table.NewLimit(p.Rate, p.Burst)
	return tier{Plan: p, Limit: limit}, err
}
