package entry

import (
	"math"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// LowestTurn is how many dispatches from the queue hold one that goes to the lowest
// level waiting, whatever its rank.
const LowestTurn = 20

// MostRoutes is the highest number of a route whose time is learned.
const MostRoutes = 1024

// Forever as an Arrival's Remaining means: no deadline.
const Forever = time.Duration(math.MaxInt64)

// Check decides which work gets a slot, which waits and which is turned away, from
// what has been observed. It is a plain value; deciding is pure and O(1).
type Check struct {
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
	Above     float64       // arrivals per second of higher levels; zero: none, or not known
	Lowest    bool          // no lower level waits
	Peers     int           // of Ahead, those of its own level
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
//
//	w = (Ahead + 1) / (Rate − Above)
//
// since those of higher levels that will come are served first as well. Where that
// leaves nothing, there is no hope; but the lowest level that waits can count on a
// twentieth of Rate, its part of the dispatches, so that it is slowed and not shut
// out. A wait that does not fit in what the deadline leaves is DeadlineUnmeetable, one
// longer than MaxWait, or half of it where Above is known, is PredictedWait.
func (d Check) Decide(a Arrival) (Verdict, shed.Reason) {
	switch {
	case !d.InTime(a.Remaining):
		return Out, shed.DeadlineUnmeetable
	case a.Slot:
		return In, shed.Admitted
	case a.MaxWait <= 0:
		return Out, shed.Capacity
	}
	wait := d.wait(&a)
	if a.Above > 0 { // the difference of two flows: it varies more, and past half a stay the order turns
		a.MaxWait /= 2
	}
	switch {
	case a.Remaining != Forever && wait > a.Remaining-d.Service:
		return Out, shed.DeadlineUnmeetable
	case wait > a.MaxWait:
		return Out, shed.PredictedWait
	case a.Depth >= a.Bound && !a.Outranks:
		return Out, shed.QueueFull
	}
	return Waits, shed.Admitted
}

// InTime reports whether work that has this much time left can be done at all.
func (d Check) InTime(remaining time.Duration) bool {
	return remaining > d.Service && remaining > 0 || remaining == Forever
}

// wait predicts the stay: behind all that goes first, or for the lowest level behind
// its own alone, on the turns that are always its own.
func (d Check) wait(a *Arrival) time.Duration {
	if !(d.Rate > 0) {
		return 0
	}
	turns := d.Rate / LowestTurn
	switch {
	case a.Above <= 0:
		return stay(a.Ahead, d.Rate)
	case a.Lowest:
		return min(stay(a.Ahead, d.Rate-a.Above), stay(a.Peers, turns))
	}
	return stay(a.Ahead, d.Rate-a.Above-turns) // the lowest level has its turns before this one
}

// stay returns how long it takes until the turn after so many others comes.
func stay(ahead int, rate float64) time.Duration {
	s := (float64(ahead) + 1) / rate * float64(time.Second)
	if !(rate > 0) || s >= float64(Forever) {
		return Forever
	}
	return time.Duration(s)
}
