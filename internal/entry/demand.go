package entry

import (
	"time"

	"github.com/headgate-go/headgate/priority"
)

// Demand observes how fast work of each level arrives. The zero value is ready, with
// no evidence. It is not safe for concurrent use, allocates nothing, and every method
// is O(1).
//
// λ = arrivals / time. While the time remembered is within a second, each arrival
// discounts the older ones by the share of a second that has passed, else by 1/64: the
// memory is one second or 64 arrivals, whichever is longer. A second is the horizon of
// a stay in the queue; 64 arrivals are good to an eighth.
type Demand struct {
	level [priority.Count]arrivals
	short time.Time // since when newcomers find no slot
	found time.Time // when the latest one found none
	slots int       // the most there were since short
}

type arrivals struct {
	n     float64 // arrivals, older ones discounted
	slots float64 // that they asked for
	span  float64 // seconds they took
	last  time.Time
}

const (
	demandHorizon = 1.0 // second
	demandMemory  = 64  // arrivals
	demandLeast   = 8   // arrivals that make evidence
)

// Arrived tells that work of this level asked for so many slots at now.
func (d *Demand) Arrived(now time.Time, l priority.Level, slots int) {
	a := &d.level[l.Index()]
	if a.last.IsZero() {
		a.last = now
		return
	}
	gap := float64(max(now.Sub(a.last), 0)) * (1.0 / float64(time.Second)) // Seconds divides twice
	keep := 1 - 1.0/demandMemory
	if a.span <= demandHorizon {
		keep = max(keep, 1-gap/demandHorizon)
	}
	a.n, a.slots = a.n*keep+1, a.slots*keep+float64(slots)
	a.span, a.last = a.span*keep+gap, now
}

// Rate returns how many arrive per second of this level, zero without evidence.
func (d *Demand) Rate(now time.Time, l priority.Level) float64 {
	a := &d.level[l.Index()]
	return a.per(a.n, now)
}

// From returns how many arrive per second of this level and of those above it.
func (d *Demand) From(now time.Time, l priority.Level) (perSecond float64) {
	for i := l.Index(); i < priority.Count; i++ {
		perSecond += d.Rate(now, priority.All()[i])
	}
	return perSecond
}

// Slots returns how many slots are asked for per second by the levels above this one,
// by itself, and by those below.
func (d *Demand) Slots(now time.Time, l priority.Level) (above, own, below float64) {
	for i := range d.level {
		rate := d.level[i].per(d.level[i].slots, now)
		switch {
		case i > l.Index():
			above += rate
		case i < l.Index():
			below += rate
		default:
			own = rate
		}
	}
	return above, own, below
}

// per returns how many per second n are, zero without evidence.
func (a *arrivals) per(n float64, now time.Time) float64 {
	span := a.span + max(now.Sub(a.last), 0).Seconds()
	if a.n < demandLeast || span <= 0 {
		return 0
	}
	return n / span
}

// Short tells that a newcomer found none of so many slots free, and reports whether
// that has been so for the given time, a quarter of its longest stay, with no pause of a
// whole stay and without more slots than there were: while a limit is on its way up, what
// comes free tells little.
func (d *Demand) Short(now time.Time, lasting time.Duration, slots int) bool {
	if now.Sub(d.found) > 4*lasting {
		d.short, d.slots = now, slots
	}
	if slots > d.slots {
		d.short, d.slots = now, slots
	}
	d.found = now
	return now.Sub(d.short) >= lasting
}
