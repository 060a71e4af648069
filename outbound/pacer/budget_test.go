package pacer

import (
	"fmt"
	"testing"
	"time"
)

func TestARetryBudgetForgets(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	for _, c := range []struct {
		o     BudgetOptions
		calls int // at 0
		takes int // at 0
		at    float64
		want  float64 // left then
	}{
		{BudgetOptions{Ratio: 0.2, Floor: NoBudget}, 100, 0, 0, 20},
		{BudgetOptions{Ratio: 0.2, Floor: NoBudget}, 100, 0, 9, 20},
		{BudgetOptions{Ratio: 0.2, Floor: NoBudget}, 100, 0, 10, 0}, // what calls earned
		{BudgetOptions{Ratio: 0.2, Floor: NoBudget}, 100, 30, 9, 0}, // no more than was earned
		{BudgetOptions{Ratio: NoBudget, Floor: 1}, 0, 10, 9, 0},
		{BudgetOptions{Ratio: NoBudget, Floor: 1}, 0, 10, 10, 10}, // and what retries cost
		{BudgetOptions{Ratio: NoBudget, Floor: 1}, 0, 4, 5, 6},
		{BudgetOptions{}, 100, 0, 0, 120}, // the default: 20 % of the calls and ten a second
		{BudgetOptions{}, 100, 0, 3600, 100},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			b := newRetryBudget(c.o)
			for range c.calls {
				b.call(start)
			}
			for range c.takes {
				b.take(start)
			}
			if got := b.left(at(c.at)); got < c.want-1e-6 || got > c.want+1e-6 {
				t.Errorf("%v left after %v s, want %v", got, c.at, c.want)
			}
		})
	}
}
