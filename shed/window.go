package shed

import (
	"math"
	"time"
)

// window adds up what happens between two decisions. Times are durations since
// the law's first event, so that the arithmetic is on integers.
type window struct {
	open     time.Duration // counts from here; before it the change of limit settles
	last     time.Duration // the latest event
	load     Load          // in force since last
	area     int64         // Σ in-flight × nanoseconds
	bound    time.Duration // how long the limit was what held work back
	served   int
	timedOut int
	other    int           // ended in any other way
	left     int           // of those, clients that left after more than the known latency
	stayed   time.Duration // Σ of the time those held their slots
	fresh    int           // of served and timed out, admitted since the limit last moved
	took     time.Duration // Σ of the time that those held their slots
	squares  float64       // Σ of its squares, in s²
	peak     int           // most in flight at once
	allowed  time.Duration // Σ of the time admitted work had until its deadline
	allowedN int
}

// reading is what one window measured.
type reading struct {
	length   time.Duration
	inFlight float64       // time average
	rate     float64       // served per second
	ends     float64       // served and timed out per second
	all      float64       // ends of any kind per second
	latency  time.Duration // mean of the fresh, or by Little's law; 0: nothing ended
	binding  float64       // share of the window in which the limit held work back
	allowed  time.Duration // mean time until the deadline at admission; 0: no deadlines
	served   int
	timedOut int
	other    int           // ends that are neither
	left     int           // of those, clients that left after more than the known latency
	patience time.Duration // mean time those held their slots
	silence  time.Duration // at the window's end, since anything ended; 0: nothing ever did
	fresh    int           // of served and timed out, admitted since the limit last moved
	vary     float64       // spread of the time held over its mean, of the fresh; 0: not known
	peak     int           // most in flight at once
	room     int           // in flight and waiting at its end: what a higher limit would fill
	braked   bool          // the limit was held down in the meantime
	stalled  bool          // at its end nothing had ended for far too long at this rate
}

// advance moves the window to t under the load that was in force.
func (w *window) advance(t time.Duration, limit int) {
	from := max(w.last, w.open)
	if dt := t - from; dt > 0 {
		w.peak = max(w.peak, w.load.InFlight)
		w.area += int64(w.load.InFlight) * int64(dt)
		if w.load.Waiting > 0 || w.load.InFlight >= limit {
			w.bound += dt
		}
	}
	w.last = max(w.last, t)
}

// count adds a piece of work that ended at now. known is the latency from which on
// a client that left says something; zero: none does.
func (w *window) count(now time.Time, s Sample, fresh bool, known time.Duration) {
	switch s.Outcome {
	case Served:
		w.served++
	case TimedOut:
		w.timedOut++
	default:
		w.other++
		if held := now.Sub(s.Admitted); s.Outcome == Ignored && known > 0 && held > known {
			w.left++
			w.stayed += held
		}
		return
	}
	if fresh {
		w.fresh++
		held := max(now.Sub(s.Admitted), 0)
		w.took += held
		s := float64(held) * (1.0 / float64(time.Second)) // Seconds divides twice
		w.squares += s * s
	}
	if !s.Deadline.IsZero() && s.Deadline.After(s.Admitted) {
		w.allowed += s.Deadline.Sub(s.Admitted)
		w.allowedN++
	}
}

// ended is how much work ended that measures anything.
func (r *reading) ended() int { return r.served + r.timedOut }

// missed returns the reading with those clients that left counted as work that missed
// its deadline, which they did not announce: it is no longer than they stayed. That is
// so when they are a tenth of all ends and the limit is what made the others wait; else
// the reading is returned as it is.
func (r reading) missed() reading {
	if r.left == 0 || 10*r.left < r.ended()+r.other || r.binding < binds {
		return r
	}
	r.timedOut += r.left
	r.ends = float64(r.ended()) / r.length.Seconds()
	if r.allowed == 0 {
		r.allowed = r.patience
	}
	if r.latency == 0 {
		r.latency = r.patience
	}
	return r
}

// restart begins a new window at open, keeping the load.
func (w *window) restart(open time.Duration) {
	*w = window{open: open, last: w.last, load: w.load}
}

// read returns what was measured. The window must have a positive length.
func (w *window) read() reading {
	length := w.last - w.open
	r := reading{
		length:   length,
		inFlight: float64(w.area) / float64(length),
		rate:     float64(w.served) / length.Seconds(),
		ends:     float64(w.served+w.timedOut) / length.Seconds(),
		binding:  float64(w.bound) / float64(length),
		served:   w.served,
		all:      float64(w.served+w.timedOut+w.other) / length.Seconds(),
		timedOut: w.timedOut,
		other:    w.other,
		left:     w.left,
		fresh:    w.fresh,
		peak:     w.peak,
		room:     w.load.InFlight + w.load.Waiting,
	}
	if w.fresh >= fewSamples && w.took > 0 {
		mean := w.took.Seconds() / float64(w.fresh)
		r.vary = math.Sqrt(max(w.squares/float64(w.fresh)/(mean*mean)-1, 0))
	}
	if w.left > 0 {
		r.patience = w.stayed / time.Duration(w.left)
	}
	switch {
	case r.ended() == 0:
	case 5*w.fresh >= 4*r.ended():
		r.latency = w.took / time.Duration(w.fresh)
	default: // the slow ones of the fresh have not ended yet
		r.latency = time.Duration(r.inFlight / r.ends * float64(time.Second))
	}
	if w.allowedN > 0 {
		r.allowed = w.allowed / time.Duration(w.allowedN)
	}
	return r
}
