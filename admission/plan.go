package admission

import (
	"errors"
	"fmt"
	"math"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// sold is what a caller's plan says besides its rate, as the visit applies it.
type sold struct {
	factor int     // of the cost; below 1 counts as 1
	share  float64 // of the pool's slots; 0: no cap
}

// asSold applies the caller's plan and rank: it takes note of the plan's factor and
// share, and returns the level of work that ranks at level by itself. Only who is
// verified has a rank, and a plan raises, never lowers.
func (v *visit) asSold(level priority.Level) priority.Level {
	planner := v.plans
	if !v.Caller.Verified {
		planner, v.Caller.Plan = v.strangers, ""
	}
	if planner != nil {
		p := planner.PlanOf(v.Caller.limitKey())
		v.sold = sold{factor: p.Cost, share: p.Share}
		if floor, ok := priority.Parse(p.Level); ok && v.Caller.Verified {
			level = max(level, floor)
		}
	}
	if v.Caller.Verified {
		level = v.Caller.Level.apply(level)
	}
	return level
}

// price is what work of the given cost takes, at most what a limit can count.
func (s sold) price(cost int) int {
	if s.factor > 1 && cost > math.MaxInt/s.factor {
		return math.MaxInt
	}
	return cost * max(s.factor, 1)
}

// slots is the plan's part of a limit, rounded up, at least 1; zero: no cap.
func (s sold) slots(limit int) int {
	if s.share <= 0 {
		return 0
	}
	// Rounding of the product must not push a whole number to the next.
	return max(1, int(math.Ceil(s.share*float64(limit)*(1-1e-12))))
}

// checkLevels reports the plans of l whose level is none.
func checkLevels(l ratelimit.Limiter) error {
	table, ok := ratelimit.PlannerOf(l).(ratelimit.PlanTable)
	if !ok {
		return nil
	}
	var errs []error
	for name, p := range table.Plans() {
		if _, known := priority.Parse(p.Level); p.Level != "" && !known {
			errs = append(errs, fmt.Errorf("plan %q: Level %q is none (want batch, normal, high or critical)", name, p.Level))
		}
	}
	return errors.Join(errs...)
}
