package entry_test

import (
	"math"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/shed"
)

func TestCheck(t *testing.T) {
	const ms = time.Millisecond
	open := entry.Arrival{Slot: true, Remaining: entry.Forever}
	queued := entry.Arrival{Bound: 10, MaxWait: 100 * ms, Remaining: entry.Forever}
	with := func(a entry.Arrival, change func(*entry.Arrival)) entry.Arrival { change(&a); return a }
	short := func(change func(*entry.Arrival)) entry.Arrival { return with(queued, change) }
	long := func(change func(*entry.Arrival)) entry.Arrival {
		return with(queued, func(a *entry.Arrival) { a.Bound, a.MaxWait = 100, time.Second; change(a) })
	}
	known := entry.Check{Rate: 100, Service: 20 * ms} // one every 10 ms

	for name, c := range map[string]struct {
		door    entry.Check
		arrival entry.Arrival
		verdict entry.Verdict
		reason  shed.Reason
	}{
		"a free slot":                    {known, open, entry.In, shed.Admitted},
		"expired, though a slot is free": {entry.Check{}, with(open, func(a *entry.Arrival) { a.Remaining = 0 }), entry.Out, shed.DeadlineUnmeetable},
		"no time to be done":             {known, with(open, func(a *entry.Arrival) { a.Remaining = 20 * ms }), entry.Out, shed.DeadlineUnmeetable},
		"just time to be done":           {known, with(open, func(a *entry.Arrival) { a.Remaining = 21 * ms }), entry.In, shed.Admitted},
		"does not wait":                  {known, with(queued, func(a *entry.Arrival) { a.MaxWait = 0 }), entry.Out, shed.Capacity},
		"never waits, whatever negative": {known, with(queued, func(a *entry.Arrival) { a.MaxWait = -1 }), entry.Out, shed.Capacity},
		"nobody ahead":                   {known, queued, entry.Waits, shed.Admitted},
		"nine ahead fit in 100 ms":       {known, with(queued, func(a *entry.Arrival) { a.Ahead = 9 }), entry.Waits, shed.Admitted},
		"ten ahead do not":               {known, with(queued, func(a *entry.Arrival) { a.Ahead = 10 }), entry.Out, shed.PredictedWait},
		"ten ahead, rate not known":      {entry.Check{}, with(queued, func(a *entry.Arrival) { a.Ahead = 10 }), entry.Waits, shed.Admitted},
		"NaN rate is no evidence":        {entry.Check{Rate: math.NaN()}, with(queued, func(a *entry.Arrival) { a.Ahead = 10 }), entry.Waits, shed.Admitted},
		"next to no rate, no overflow":   {entry.Check{Rate: 1e-300}, queued, entry.Out, shed.PredictedWait},
		"the wait eats the deadline":     {known, with(queued, func(a *entry.Arrival) { a.Ahead, a.Remaining = 4, 69*ms }), entry.Out, shed.DeadlineUnmeetable},
		"the wait just fits":             {known, with(queued, func(a *entry.Arrival) { a.Ahead, a.Remaining = 4, 70*ms }), entry.Waits, shed.Admitted},
		"half a stay, behind others":     {known, short(func(a *entry.Arrival) { a.Above, a.Own, a.Ahead = 45, 10, 1 }), entry.Waits, shed.Admitted},
		"half is over":                   {known, short(func(a *entry.Arrival) { a.Above, a.Own, a.Ahead = 45, 10, 2 }), entry.Out, shed.PredictedWait},
		"the first have the whole stay":  {known, short(func(a *entry.Arrival) { a.Own, a.Below, a.Ahead = 150, 50, 9 }), entry.Waits, shed.Admitted},
		"a quarter where too little is":  {known, long(func(a *entry.Arrival) { a.Own, a.Ahead = 101, 24 }), entry.Waits, shed.Admitted},
		"a quarter is over":              {known, long(func(a *entry.Arrival) { a.Own, a.Ahead = 101, 25 }), entry.Out, shed.PredictedWait},
		"a quarter of a deadline":        {known, long(func(a *entry.Arrival) { a.Own, a.Ahead, a.Remaining = 101, 12, 540*ms }), entry.Waits, shed.Admitted},
		"a quarter of it is over":        {known, long(func(a *entry.Arrival) { a.Own, a.Ahead, a.Remaining = 101, 13, 540*ms }), entry.Out, shed.DeadlineUnmeetable},
		"four may wait for half of it":   {known, short(func(a *entry.Arrival) { a.Own, a.Ahead = 101, 3 }), entry.Waits, shed.Admitted},
		"a fifth may not":                {known, short(func(a *entry.Arrival) { a.Own, a.Ahead = 101, 4 }), entry.Out, shed.PredictedWait},
		"the first keep a round in line": {known, long(func(a *entry.Arrival) { a.Own, a.Below, a.Ahead, a.Slots = 151, 50, 39, 40 }), entry.Waits, shed.Admitted},
		"and no more":                    {known, long(func(a *entry.Arrival) { a.Own, a.Below, a.Ahead, a.Slots = 151, 50, 40, 40 }), entry.Out, shed.PredictedWait},
		"above takes all":                {known, short(func(a *entry.Arrival) { a.Above, a.Own = 100, 10 }), entry.Out, shed.PredictedWait},
		"all, and a deadline":            {known, short(func(a *entry.Arrival) { a.Above, a.Own, a.Remaining = 100, 10, 110*ms }), entry.Out, shed.DeadlineUnmeetable},
		"the lowest has its turns":       {known, long(func(a *entry.Arrival) { a.Above, a.Own, a.Lowest, a.Ahead = 200, 10, true, 50 }), entry.Waits, shed.Admitted},
		"its peers have them first":      {known, long(func(a *entry.Arrival) { a.Above, a.Own, a.Lowest, a.Ahead, a.Peers = 200, 10, true, 50, 1 }), entry.Out, shed.PredictedWait},
		"the lowest, above takes little": {known, short(func(a *entry.Arrival) { a.Above, a.Own, a.Lowest, a.Ahead, a.Peers = 10, 10, true, 3, 3 }), entry.Waits, shed.Admitted},
		"no demand of its own is known":  {known, short(func(a *entry.Arrival) { a.Ahead = 9 }), entry.Waits, shed.Admitted},
		"above of an unknown rate":       {entry.Check{}, with(queued, func(a *entry.Arrival) { a.Above = 100 }), entry.Waits, shed.Admitted},
		"full":                           {known, with(queued, func(a *entry.Arrival) { a.Depth = 10 }), entry.Out, shed.QueueFull},
		"full, but somebody yields":      {known, with(queued, func(a *entry.Arrival) { a.Depth, a.Outranks = 10, true }), entry.Waits, shed.Admitted},
	} {
		t.Run(name, func(t *testing.T) {
			if v, r := c.door.Decide(c.arrival); v != c.verdict || r != c.reason {
				t.Errorf("%v %v, want %v %v", v, r, c.verdict, c.reason)
			}
		})
	}
}
