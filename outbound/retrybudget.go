package outbound

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// RetryBudget bounds retries to a share of the calls, so that a service in trouble
// gets 20 % more work and not three times as much. The law is Finagle's: retries in
// the last 10 s may not exceed Ratio × calls in the last 10 s + Floor × 10 s. It is
// charged when a retry is decided. Safe for concurrent use; a few tens of
// nanoseconds per call, no allocation.
type RetryBudget struct {
	ratio float64
	floor float64

	mu    sync.Mutex
	slots [budgetSlots]budgetSlot
}

// BudgetOptions configures a RetryBudget.
type BudgetOptions struct {
	// Ratio is how many retries each call earns. Zero means 0.2; NoBudget none.
	Ratio float64
	// Floor is how many retries per second are allowed however few the calls.
	// Zero means 10; NoBudget none.
	Floor float64
}

// NoBudget as a Ratio or a Floor means that it allows nothing.
const NoBudget = -1

const (
	defaultRatio = 0.2
	defaultFloor = 10

	budgetWindow = 10 * time.Second
	budgetSlots  = 10
	budgetSlotOf = budgetWindow / budgetSlots
)

// budgetSlot counts one second's worth of calls and retries.
type budgetSlot struct {
	number  int64 // of the second
	calls   int
	retries int
}

// NewRetryBudget validates o and builds a budget. Errors name the field.
func NewRetryBudget(o BudgetOptions) (*RetryBudget, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return newBudget(o), nil
}

func (o BudgetOptions) validate() error {
	for _, f := range [...]struct {
		name string
		v    float64
	}{{"Ratio", o.Ratio}, {"Floor", o.Floor}} {
		if math.IsNaN(f.v) || math.IsInf(f.v, 0) || f.v < 0 && f.v != NoBudget {
			return fmt.Errorf("outbound: BudgetOptions.%s = %v: must be a positive number, zero or NoBudget", f.name, f.v)
		}
	}
	return nil
}

func newBudget(o BudgetOptions) *RetryBudget {
	return &RetryBudget{
		ratio: max(0, withDefault(o.Ratio, defaultRatio)),
		floor: max(0, withDefault(o.Floor, defaultFloor)),
	}
}

// Call notes a call, which earns its share of a retry.
func (b *RetryBudget) Call(now time.Time) {
	b.mu.Lock()
	b.slot(now).calls++
	b.mu.Unlock()
}

// Try charges one retry, or reports false and charges nothing.
func (b *RetryBudget) Try(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left(now) < 1 {
		return false
	}
	b.slot(now).retries++
	return true
}

// Left returns how many retries are allowed at now.
func (b *RetryBudget) Left(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.left(now))
}

func (b *RetryBudget) left(now time.Time) float64 {
	current := slotNumber(now)
	calls, retries := 0, 0
	for i := range b.slots {
		if s := &b.slots[i]; s.number > current-budgetSlots && s.number <= current {
			calls += s.calls
			retries += s.retries
		}
	}
	// A share of a retry is a sum of decimals: without the allowance, five calls
	// at 0.2 would earn none.
	return b.ratio*float64(calls) + b.floor*budgetWindow.Seconds() - float64(retries) + 1e-9
}

func (b *RetryBudget) slot(now time.Time) *budgetSlot {
	n := slotNumber(now)
	s := &b.slots[n%budgetSlots]
	if s.number != n {
		*s = budgetSlot{number: n}
	}
	return s
}

func slotNumber(now time.Time) int64 { return now.UnixNano() / int64(budgetSlotOf) }
