package shed_test

import (
	"math"
	"testing"
	"time"

	"github.com/headgate-go/headgate/shed"
)

func TestEntryCheck(t *testing.T) {
	const ms = time.Millisecond
	open := shed.Arrival{Slot: true, Remaining: shed.Forever}
	queued := shed.Arrival{Bound: 10, MaxWait: 100 * ms, Remaining: shed.Forever}
	with := func(a shed.Arrival, change func(*shed.Arrival)) shed.Arrival { change(&a); return a }
	known := shed.EntryCheck{Rate: 100, Service: 20 * ms} // one every 10 ms

	for name, c := range map[string]struct {
		door    shed.EntryCheck
		arrival shed.Arrival
		verdict shed.Verdict
		reason  shed.Reason
	}{
		"a free slot":                    {known, open, shed.In, shed.Admitted},
		"expired, though a slot is free": {shed.EntryCheck{}, with(open, func(a *shed.Arrival) { a.Remaining = 0 }), shed.Out, shed.DeadlineUnmeetable},
		"no time to be done":             {known, with(open, func(a *shed.Arrival) { a.Remaining = 20 * ms }), shed.Out, shed.DeadlineUnmeetable},
		"just time to be done":           {known, with(open, func(a *shed.Arrival) { a.Remaining = 21 * ms }), shed.In, shed.Admitted},
		"does not wait":                  {known, with(queued, func(a *shed.Arrival) { a.MaxWait = 0 }), shed.Out, shed.Capacity},
		"never waits, whatever negative": {known, with(queued, func(a *shed.Arrival) { a.MaxWait = -1 }), shed.Out, shed.Capacity},
		"nobody ahead":                   {known, queued, shed.Waits, shed.Admitted},
		"nine ahead fit in 100 ms":       {known, with(queued, func(a *shed.Arrival) { a.Ahead = 9 }), shed.Waits, shed.Admitted},
		"ten ahead do not":               {known, with(queued, func(a *shed.Arrival) { a.Ahead = 10 }), shed.Out, shed.PredictedWait},
		"ten ahead, rate not known":      {shed.EntryCheck{}, with(queued, func(a *shed.Arrival) { a.Ahead = 10 }), shed.Waits, shed.Admitted},
		"NaN rate is no evidence":        {shed.EntryCheck{Rate: math.NaN()}, with(queued, func(a *shed.Arrival) { a.Ahead = 10 }), shed.Waits, shed.Admitted},
		"next to no rate, no overflow":   {shed.EntryCheck{Rate: 1e-300}, queued, shed.Out, shed.PredictedWait},
		"the wait eats the deadline":     {known, with(queued, func(a *shed.Arrival) { a.Ahead, a.Remaining = 4, 69*ms }), shed.Out, shed.DeadlineUnmeetable},
		"the wait just fits":             {known, with(queued, func(a *shed.Arrival) { a.Ahead, a.Remaining = 4, 70*ms }), shed.Waits, shed.Admitted},
		"above takes half":               {known, with(queued, func(a *shed.Arrival) { a.Above, a.Ahead = 45, 1 }), shed.Waits, shed.Admitted},
		"half a stay, with above":        {known, with(queued, func(a *shed.Arrival) { a.Above, a.Ahead = 45, 2 }), shed.Out, shed.PredictedWait},
		"above takes all":                {known, with(queued, func(a *shed.Arrival) { a.Above = 100 }), shed.Out, shed.PredictedWait},
		"all, and a deadline":            {known, with(queued, func(a *shed.Arrival) { a.Above, a.Remaining = 100, time.Hour }), shed.Out, shed.DeadlineUnmeetable},
		"the lowest has its turns":       {known, with(queued, func(a *shed.Arrival) { a.Above, a.Lowest, a.Ahead, a.MaxWait = 200, true, 50, time.Second }), shed.Waits, shed.Admitted},
		"its peers have them first":      {known, with(queued, func(a *shed.Arrival) { a.Above, a.Lowest, a.Ahead, a.Peers, a.MaxWait = 200, true, 50, 2, time.Second }), shed.Out, shed.PredictedWait},
		"the lowest, above takes little": {known, with(queued, func(a *shed.Arrival) { a.Above, a.Lowest, a.Ahead, a.Peers = 10, true, 3, 3 }), shed.Waits, shed.Admitted},
		"above of an unknown rate":       {shed.EntryCheck{}, with(queued, func(a *shed.Arrival) { a.Above = 100 }), shed.Waits, shed.Admitted},
		"full":                           {known, with(queued, func(a *shed.Arrival) { a.Depth = 10 }), shed.Out, shed.QueueFull},
		"full, but somebody yields":      {known, with(queued, func(a *shed.Arrival) { a.Depth, a.Outranks = 10, true }), shed.Waits, shed.Admitted},
	} {
		t.Run(name, func(t *testing.T) {
			if v, r := c.door.Decide(c.arrival); v != c.verdict || r != c.reason {
				t.Errorf("%v %v, want %v %v", v, r, c.verdict, c.reason)
			}
		})
	}
}
