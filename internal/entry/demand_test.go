package entry_test

import (
	"math"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
)

func TestDemandFollowsWhatArrives(t *testing.T) {
	var d entry.Demand
	now := time.Unix(1e9, 0)
	if d.Rate(now, priority.High) != 0 {
		t.Fatal("a rate without evidence")
	}
	arrive := func(n int, gap time.Duration) {
		for range n {
			now = now.Add(gap)
			d.Arrived(now, priority.High, 1)
		}
	}
	for _, step := range []struct {
		n    int
		gap  time.Duration
		want float64
	}{
		{3000, time.Millisecond, 1000},         // its memory is a second
		{600, 10 * time.Millisecond, 100},      // six seconds later the old rate is gone
		{400, 2 * time.Second, 0.5},            // few arrivals: its memory is 64 of them
		{8000, 500 * time.Microsecond, 2000.0}, // and back within four seconds
	} {
		arrive(step.n, step.gap)
		if got := d.Rate(now, priority.High); math.Abs(math.Log(got/step.want)) > 0.15 {
			t.Errorf("after %d arrivals every %v: %.2f/s, want %.2f", step.n, step.gap, got, step.want)
		}
	}
	rate := d.Rate(now, priority.High)
	for l, want := range map[priority.Level][3]float64{priority.Normal: {rate, 0, 0}, priority.High: {0, rate, 0}, priority.Critical: {0, 0, rate}} {
		if above, own, below := d.Slots(now, l); [3]float64{above, own, below} != want {
			t.Errorf("%v: %v above, %v own, %v below", l, above, own, below)
		}
	}
	before := d.Rate(now, priority.High)
	if got := d.Rate(now.Add(3*time.Second), priority.High); got > before/3 {
		t.Errorf("%.0f/s after three silent seconds, %.0f/s before", got, before)
	}
}

// Wide work is one arrival, and asks for as many slots as it is wide.
func TestDemandCountsTheSlotsOfWideWork(t *testing.T) {
	var d entry.Demand
	now := time.Unix(1e9, 0)
	for i := range 400 {
		now = now.Add(10 * time.Millisecond)
		d.Arrived(now, priority.High, 1+i%2*4) // three in the mean
		d.Arrived(now, priority.Normal, 1)
		if above, own, _ := d.Slots(now, priority.Normal); i < 7 && above+own != 0 {
			t.Fatalf("%.0f slots/s after %d arrivals: too few to tell", above+own, i+1)
		}
	}
	above, own, below := d.Slots(now, priority.Normal)
	for name, c := range map[string]struct{ got, want float64 }{
		"arrivals of a level":      {d.Rate(now, priority.High), 100},
		"arrivals of it and above": {d.From(now, priority.Normal), 200},
		"slots asked for above":    {above, 300},
		"slots of its own":         {own, 100},
		"slots asked for below":    {below, 0},
	} {
		if math.Abs(c.got-c.want) > 0.1*c.want {
			t.Errorf("%s: %.1f/s, want %.0f", name, c.got, c.want)
		}
	}
}

func TestSlotsAreShortWhenNewcomersKeepFindingNone(t *testing.T) {
	var d entry.Demand
	start := time.Unix(1e9, 0)
	for _, step := range []struct {
		at    time.Duration
		slots int
		want  bool
	}{
		{0, 8, false}, {300 * time.Millisecond, 8, false}, {600 * time.Millisecond, 8, true}, {900 * time.Millisecond, 6, true},
		{2900 * time.Millisecond, 6, true},  // few come: that is no end
		{5000 * time.Millisecond, 6, false}, // a pause of a whole stay begins anew
		{5400 * time.Millisecond, 6, false}, {5600 * time.Millisecond, 6, true},
		{5700 * time.Millisecond, 7, false}, // more slots than there were: the limit is on its way up
		{6100 * time.Millisecond, 7, false}, {6200 * time.Millisecond, 5, true}, {6300 * time.Millisecond, 7, true},
	} {
		if got := d.Short(start.Add(step.at), 500*time.Millisecond, step.slots); got != step.want {
			t.Errorf("at %v: %v", step.at, got)
		}
	}
}

// A slot is kept only for a level whose waiter ran out of time while that very slot
// was taken, for one mean gap each, within a fiftieth of the slot time.
func TestHoldKeepsWhatWasWaitedFor(t *testing.T) {
	const ms = time.Millisecond
	start := time.Unix(1e9, 0)
	at := func(n int) time.Time { return start.Add(time.Duration(n) * ms) }
	var h entry.Hold
	h.Freed(at(1), at(0), 10*ms, 4)
	if h.Kept(at(1), priority.Batch) != 0 {
		t.Error("kept without a miss")
	}
	h.Missed(at(100), priority.High, 4)
	h.Missed(at(101), priority.High, 4)
	h.Missed(at(101), priority.Normal, 4) // below: another level's turn is not at stake
	h.Freed(at(110), at(105), 10*ms, 4)   // taken after the miss
	if h.Kept(at(110), priority.Batch) != 0 {
		t.Error("kept a slot that was not waited for")
	}
	h.Freed(at(120), at(50), 10*ms, 4)
	h.Freed(at(120), at(50), 10*ms, 4)
	h.Freed(at(120), at(50), 10*ms, 4) // two were missed, not three
	for _, c := range []struct {
		at   int
		l    priority.Level
		want int
	}{
		{120, priority.Normal, 2}, {120, priority.High, 0}, {120, priority.Critical, 0}, {139, priority.Batch, 2}, {140, priority.Batch, 0},
	} {
		if got := h.Kept(at(c.at), c.l); got != c.want {
			t.Errorf("at %d ms %v leaves %d alone, want %d", c.at, c.l, got, c.want)
		}
	}
	if until, ok := h.Until(at(125)); !ok || !until.Equal(at(140)) {
		t.Errorf("kept until %v, %v", until, ok)
	}
	h.Took(at(125), priority.Critical)
	if got := h.Kept(at(125), priority.Batch); got != 1 {
		t.Errorf("%d kept after one was used", got)
	}
}

func TestHoldIsBoundedToAFiftiethOfTheSlotTime(t *testing.T) {
	const ms = time.Millisecond
	start := time.Unix(1e9, 0)
	var h entry.Hold
	idle := time.Duration(0)
	const length = 60 * time.Second
	for now := start; now.Before(start.Add(length)); now = now.Add(100 * ms) {
		for range 4 {
			h.Missed(now, priority.High, 4)
		}
		for range 4 {
			h.Freed(now.Add(ms), now.Add(-50*ms), 20*ms, 4)
		}
		for i := range 99 { // what it keeps, millisecond by millisecond
			idle += time.Duration(h.Kept(now.Add(time.Duration(i+1)*ms), priority.Batch)) * ms
		}
		h.Took(now.Add(99*ms), priority.Batch)
	}
	if most := 4*length/50 + 4*length/500; idle > most || idle < most/2 {
		t.Errorf("%v of slot time idle, at most %v", idle, most)
	}
}
