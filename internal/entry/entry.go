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
	Above     float64       // slots per second that higher levels ask for; zero: none, or not known
	Own       float64       // the same of its own level; zero: not known
	Below     float64       // the same of the levels below
	Slots     int           // the limit in force
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
// out. The longest possible wait is MaxWait, or what the deadline leaves if that is less;
// a longer one is PredictedWait, or DeadlineUnmeetable. Where Own is known it has to be a
// hopeful one.
func (d Check) Decide(a Arrival) (Verdict, shed.Reason) {
	switch {
	case !d.InTime(a.Remaining):
		return Out, shed.DeadlineUnmeetable
	case a.Slot:
		return In, shed.Admitted
	case a.MaxWait <= 0:
		return Out, shed.Capacity
	}
	wait, most, reason := d.wait(&a), a.MaxWait, shed.PredictedWait
	if left := a.Remaining - d.Service; a.Remaining != Forever && left < most {
		most, reason = left, shed.DeadlineUnmeetable
	}
	if a.Own > 0 {
		most = d.hopeful(&a, most)
	}
	switch {
	case wait > most:
		return Out, reason
	case a.Depth >= a.Bound && !a.Outranks:
		return Out, shed.QueueFull
	}
	return Waits, shed.Admitted
}

// hopeful is the longest wait that still has good prospects, of the longest possible:
// all of it where the level gets what it asks for; half where its rate is what others leave,
// the difference of two flows, because past half the order turns.
//
// Where a level does not get what it asks for, its line is full in any case, and its length
// only decides how long those wait who are refused in the end. A quarter keeps it full, or
// four within half; for the highest level a round of work that ends together, Slots / Rate, whose slots
// would else go to lower levels.
func (d Check) hopeful(a *Arrival, most time.Duration) time.Duration {
	few := a.Ahead < shortLine || a.Lowest && a.Peers == 0
	switch enough := d.Enough(a); {
	case a.Ahead == 0, enough && a.Above == 0:
		return most
	case enough:
		return most / 2
	case a.Above == 0 && a.Below > 0:
		return min(max(most/4, stay(a.Slots-1, d.Rate)), most)
	case few:
		return most / 2
	}
	return most / 4
}

const shortLine = 4

// Enough reports whether the level of a is known to get the slots that it asks for.
func (d Check) Enough(a *Arrival) bool {
	rate := d.Rate
	if a.Below > 0 { // a short line gives slots to those: not by chance
		rate *= measured
	}
	return a.Own > 0 && a.Above+a.Own <= rate
}

// measured is two standard deviations of one rate over another: demand from 64 arrivals is
// good to an eighth, what comes free from 24 ends to a fifth.
const measured = 1.5

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
