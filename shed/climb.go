package shed

import (
	"math"
	"time"
)

// climb is the search for the limit: what it is, what is being tried, and what is
// known so far. Its step is pure: nothing but the reading and the time decides.
type climb struct {
	bounds
	target   time.Duration
	limit    int
	latency  time.Duration // of the latest window in which work ended
	low      time.Duration // lowest latency, raised where less concurrency proved no faster
	service  time.Duration // latency below which nothing queues in this overload; 0: not known
	since    time.Duration // when that was last found
	flow     float64       // ended per second, lately
	turn     time.Duration // how long work of any kind holds its slot, lately; 0: not known
	capacity float64       // served per second in this overload; 0: not known
	budget   time.Duration // how long work may be in flight; 0: no deadline is known
	previous reading
	vary     float64 // spread of the time that work holds its slot over its mean
	used     int     // most in use at once so far
	frozen   int     // the limit before it was frozen; 0: it is not
	calm     bool    // the limit has held no work back since the latest cut
	trial    trial
	more     pace // trials upwards
	less     pace // trials downwards
}

// trial is a change of the limit under test.
type trial struct {
	kind Cause // CauseNone: no trial is on
	from int
	base reading
}

// pace says how bold the next trial in one direction is and when it may be.
type pace struct {
	first  float64 // the boldest step, as a logarithm
	least  float64 // the smallest
	stride float64 // the next one
	wait   time.Duration
	after  time.Duration
}

const (
	binds      = 0.3  // share of a window that makes the limit what holds work back
	worthwhile = 0.7  // elasticity above which concurrency buys throughput
	tolerance  = 0.05 // change of throughput that is no change
	headroom   = 1.1  // slots held over those that the capacity needs
	tolerated  = 1.1  // slots held over those that end within their budget, without a cut
	safety     = 1.5  // of a deadline over the latency that may use it up
	usual      = 0.35 // spread of the time that work takes, over its mean, until it is known
	widest     = 0.7  // spread beyond which more samples are not waited for
	unfilled   = 1.5  // times the most in use at once that a limit may be without being filled
	overdue    = 8    // ends missing that make a silence a stall: by chance, one case in 3000
	newRegime  = 0.25 // change of throughput, as a logarithm, that voids what is known
	memory     = 60   // samples that a mean goes back
	shortWait  = time.Second
	longWait   = 8 * time.Second
	stale      = 20 * time.Second

	leastSamples = 20
)

func newClimb(b bounds, target time.Duration) climb {
	c := climb{bounds: b, target: target, limit: b.initial, vary: usual}
	c.forget()
	return c
}

// forget drops what an overload taught; the limit stays.
func (c *climb) forget() {
	c.capacity, c.service, c.trial = 0, 0, trial{}
	c.more = pace{first: math.Ln2, least: 0.22, stride: math.Ln2, wait: shortWait}
	c.less = pace{first: 0.36, least: 0.16, stride: 0.2, wait: shortWait}
}

// step takes the reading of one window that closed at t, and moves the limit or
// not.
func (c *climb) step(t time.Duration, r reading) Cause {
	if r.inFlight <= 0 {
		return c.relax(r)
	}
	if r.all == 0 {
		return c.stall(r)
	}
	turn, _ := c.blend(float64(c.turn), r.inFlight/r.all*float64(time.Second), r.ended()+r.other)
	c.turn = time.Duration(turn)
	if c.frozen == 0 {
		r = r.missed()
	}
	if r.ended() == 0 { // alive, and nothing to measure
		return c.suspend()
	}
	c.observe(r)
	switch {
	case c.trial.kind == CauseLatency && !r.braked:
		return c.judgeCut(t, r)
	case r.braked || r.inFlight > tolerated*c.most():
		return c.cut(r)
	case r.stalled:
		c.trial = trial{}
		return CauseNone
	case r.binding < binds:
		return c.relax(r)
	case c.trial.kind == CauseGrow:
		return c.judgeMore(t, r)
	case c.trial.kind == CauseSaturated:
		return c.judgeLess(t, r)
	}
	c.learn(r)
	if room := min(c.room(), c.highest(r)); room > c.limit {
		return c.move(room, CauseGrow)
	}
	return c.try(t, r)
}

// stall handles a window in which nothing ended. It halves the limit when ends are
// overdue at the known flow and the limit is full; work that takes its time is no
// stall. The next halving takes a silence twice as long, because what is known of
// the flow is no longer true.
func (c *climb) stall(r reading) Cause {
	missing := r.inFlight * r.silence.Seconds() / c.turn.Seconds()
	if c.turn == 0 || r.binding < binds || missing <= overdue {
		return CauseNone
	}
	c.forget()
	c.turn = time.Duration(2 * missing / overdue * float64(c.turn))
	return c.move(c.limit/2, CauseStalled)
}

// freeze holds the limit at what is in flight, because ends are overdue: what works in
// there will tell how long it takes now, and more would meet all that comes after it.
func (c *climb) freeze(inFlight int) Cause {
	if c.trial.kind != CauseNone || inFlight < overdue || 10*inFlight > 9*c.limit {
		return CauseNone
	}
	from := c.limit
	cause := c.move(inFlight, CauseStalled)
	if cause != CauseNone {
		c.forget()
		c.frozen = from
	}
	return cause
}

// suspend ends a trial, or a freeze, that cannot be judged, as if it had not been.
func (c *climb) suspend() Cause {
	tr, frozen := c.trial, c.frozen
	c.trial, c.frozen = trial{}, 0
	switch {
	case frozen > c.limit:
		return c.move(frozen, CauseUndo)
	case tr.kind == CauseGrow || tr.kind == CauseSaturated:
		return c.move(tr.from, CauseUndo)
	}
	return CauseNone
}

// observe takes what a window says whatever the limit does.
func (c *climb) observe(r reading) {
	c.used = max(c.used, r.peak)
	if r.vary > 0 {
		c.vary += (r.vary - c.vary) * float64(r.fresh) / float64(r.fresh+memory)
	}
	c.flow, _ = c.blend(c.flow, r.ends, r.ended())
	if p := c.previous; r.braked && r.inFlight < 0.8*p.inFlight && float64(r.latency) > 0.9*float64(p.latency) {
		// Less concurrency was no faster: nothing queued.
		c.low, c.service = max(c.low, r.latency), r.latency
	}
	c.previous = r
	latency, _ := c.blend(float64(c.latency), float64(r.latency), r.ended())
	c.latency = time.Duration(latency)
	if c.latency < c.service {
		c.service = c.latency
	}
	if c.low == 0 || c.latency < c.low {
		c.low = c.latency
	}
	c.budget = c.allowance(r)
}

// round is how long the work that holds the slots takes to be replaced: R·(1 + v²), the
// mean weighed by the time that each piece holds its slot. For work of one size that is R.
// A trial that costs something does not last longer than half a second for its sake.
func (c *climb) round() time.Duration {
	round := time.Duration(float64(c.latency) * max(1, 1+c.vary*c.vary-usual*usual))
	return max(c.latency, min(round, longWindow/2))
}

// relax handles a window in which the limit held no work back.
func (c *climb) relax(r reading) Cause {
	tr, frozen := c.trial, c.frozen
	c.forget()
	c.calm, c.frozen = true, 0
	if frozen > c.limit {
		return c.move(frozen, CauseUndo)
	}
	switch tr.kind {
	case CauseSaturated:
		return c.move(tr.from, CauseUndo)
	case CauseGrow: // a raise that did not fill shows nothing
		return c.move(min(max(tr.from, r.peak), c.limit), CauseUndo)
	}
	return CauseNone
}

// allowance is how long work may be in flight, or 0 when no deadline is known.
func (c *climb) allowance(r reading) time.Duration {
	if r.allowed == 0 {
		return 0
	}
	budget := time.Duration(float64(r.allowed) / safety)
	if r.timedOut > r.served { // work that takes this long is of no use
		return budget
	}
	return max(budget, c.low)
}

// brakeAt is the latency at which the brake goes on: early out of a calm, when what
// is let in now will meet all that comes after it; later only at the clamp itself.
func (c *climb) brakeAt() time.Duration {
	if c.calm {
		return max(c.budget*3/4, c.low*3/2)
	}
	return max(c.budget, c.low*3/2)
}

// most is Little's law: what can be in flight and still end within its budget.
func (c *climb) most() float64 {
	if c.budget == 0 {
		return math.Inf(1)
	}
	return c.flow * c.budget.Seconds()
}

// within is most as a limit.
func (c *climb) within() int { return int(min(math.Ceil(c.most()), float64(c.max))) }

// cut brings the limit down to what can end within the budget. A large cut is put
// to the test; a small one only follows what is known.
func (c *climb) cut(r reading) Cause {
	c.calm = false
	limit := min(c.within()*7/8, c.limit)
	if c.low > 0 {
		limit = min(max(limit, int(math.Ceil(1.1*c.flow*c.low.Seconds()))), c.limit)
	}
	if 4*limit < 3*c.limit {
		c.forget()
		c.trial = trial{CauseLatency, c.limit, r}
	} else {
		c.trial = trial{}
	}
	return c.move(limit, CauseLatency)
}

// judgeCut ends a cut: what it took from the throughput, it took too much. When
// that is most of the cut, nothing queues any more and work simply takes this long.
func (c *climb) judgeCut(t time.Duration, r reading) Cause {
	base := c.trial.base
	c.trial = trial{}
	lost := math.Log(base.ends / r.ends)
	if c.capacity == 0 {
		c.capacity = r.rate
	}
	if lost <= tolerance || r.inFlight > 0.9*base.inFlight { // or it was not the cut that did it
		return CauseNone
	}
	c.unqueued(t, r.latency, elasticity(base.inFlight, base.ends, r.inFlight, r.ends) > worthwhile)
	c.budget = c.allowance(r)
	needed := int(math.Round(headroom * r.inFlight * math.Exp(lost)))
	within := int(math.Ceil(base.ends * c.budget.Seconds()))
	return c.move(max(min(needed, within), c.limit), CauseUndo)
}

// room is where the limit may go without a trial, because nothing queues.
func (c *climb) room() int {
	if c.service == 0 {
		return 0
	}
	switch {
	case !c.queues(1):
		return c.clamp(max(c.knee(), c.limit+1+c.limit/8))
	case !c.queues(1.05):
		return c.clamp(max(c.knee(), c.limit+1))
	}
	return min(c.knee(), c.within())
}

// knee is what the capacity needs when nothing queues, with some headroom; 0 when
// that is not known.
func (c *climb) knee() int {
	return c.clamp(int(math.Round(headroom * c.capacity * c.service.Seconds())))
}
