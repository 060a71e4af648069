package shed

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// Forever as an Arrival's Remaining means: no deadline.
const Forever = time.Duration(math.MaxInt64)

// EntryCheck decides which work gets a slot, which waits and which is turned away, from
// what has been observed. It is a plain value; deciding is pure and O(1).
type EntryCheck struct {
	Rate    float64       // slots coming free per second; zero: not known, no work is refused for a predicted wait
	Service time.Duration // time that work needs once it has a slot; zero: not known
}

// Arrival is what the check can see of work that wants a slot.
type Arrival struct {
	Level     priority.Level
	Slot      bool          // a slot is free for it and no other work goes first
	Ahead     int           // how many would be served before it, counted fairly
	Depth     int           // how many wait already within the bound
	Bound     int           // how many may wait, for this level
	Outranks  bool          // some waiting work would be served after it and can yield
	MaxWait   time.Duration // longest stay; zero or less: it does not wait
	Remaining time.Duration // until its deadline; Forever: none
}

// Verdict is what the check says.
type Verdict uint8

// The verdicts.
const (
	Out   Verdict = iota // turned away
	Waits                // joins the queue
	In                   // has a slot
)

// String returns the verdict's name.
func (v Verdict) String() string {
	switch v {
	case In:
		return "in"
	case Waits:
		return "waits"
	default:
		return "out"
	}
}

// Decide returns the verdict, and for Out the reason. Work that cannot be done
// before its deadline stays out even when a slot is free. A wait is predicted as
// (Ahead+1)/Rate; one that does not fit in what the deadline leaves is Hopeless,
// one longer than MaxWait is as good as a full queue.
func (d EntryCheck) Decide(a Arrival) (Verdict, Reason) {
	switch {
	case !d.InTime(a.Remaining):
		return Out, DeadlineUnmeetable
	case a.Slot:
		return In, Admitted
	case a.MaxWait <= 0:
		return Out, Capacity
	}
	wait := d.wait(a.Ahead)
	switch {
	case a.Remaining != Forever && wait > a.Remaining-d.Service:
		return Out, DeadlineUnmeetable
	case wait > a.MaxWait:
		return Out, PredictedWait
	case a.Depth >= a.Bound && !a.Outranks:
		return Out, QueueFull
	}
	return Waits, Admitted
}

// InTime reports whether work that has this much time left can be done at all.
func (d EntryCheck) InTime(remaining time.Duration) bool {
	return remaining > d.Service && remaining > 0 || remaining == Forever
}

// wait predicts the stay behind the given number of others.
func (d EntryCheck) wait(ahead int) time.Duration {
	if !(d.Rate > 0) {
		return 0
	}
	s := (float64(ahead) + 1) / d.Rate * float64(time.Second)
	if s >= float64(Forever) {
		return Forever
	}
	return time.Duration(s)
}

// Gauge is a second opinion beside a limit: it says which levels are turned away
// because something else than slots runs short. Package shed/pressure has one. It is
// safe for concurrent use and must not block.
type Gauge interface {
	// Sheds reports whether work of this level and caller is to be turned away.
	Sheds(now time.Time, l priority.Level, caller string) bool
	// Lowest returns the lowest level that is still let in, at least in part.
	Lowest(now time.Time) priority.Level
}
