package account

import (
	"math/rand/v2"
	"time"
)

// State is where a limiter stands with its store.
type State uint8

// The states, in the order they are met.
const (
	Shared   State = iota // the store answers: one ceiling
	Degraded              // it does not: the outage policy decides
	Probing               // it answered once
)

// String returns the state's name in metrics and logs.
func (s State) String() string { return [...]string{"shared", "degraded", "probing"}[s] }

const (
	// TripRow is how many failures one after another open the breaker.
	TripRow    = 3
	tripCalls  = 5  // or of so many calls in a second
	tripFailed = 50 // this many per cent
	closeRow   = 2  // answered probes

	minProbe = 200 * time.Millisecond
	maxProbe = time.Second
)

// Breaker decides when the store counts as away. It trips on a ratio, because a
// busy process fails more often than an idle one at equal health; and on failures
// in a row, each begun after the one before was known, because a stall of this
// process makes many calls fail at once and says nothing about the store.
type Breaker struct {
	Parts  bool // the store can be away in parts
	State  State
	Why    Why // of the last failure; WhyNothing while Shared
	Since  time.Duration
	row    int
	rowEnd time.Duration
	heard  time.Duration // last answer
	quiet  time.Duration // when the first call after it was sent that is late
	lates  int           // late calls since, one after another
	noted  time.Duration // when the first of them was found late
	cells  [2]cell       // the half second now, and the one before
	tries  int           // failed probes
	passed int           // answered probes
}

type cell struct {
	from          time.Duration
	calls, failed int
}

// Result is what became of a call.
type Result struct {
	At, Started time.Duration
	Why         Why
	Again       bool // of a key that the store was away for already
}

const cellLength = 500 * time.Millisecond

// Record takes in a call's result and says whether the store now counts as away.
// Keys that are away look for the store again and again; they count only in a row,
// or a part of a cluster would take the whole with it.
func (b *Breaker) Record(r Result) (tripped bool) {
	if b.State != Shared {
		return false
	}
	c := b.roll(r.At)
	if r.Why == WhyNothing {
		b.row, b.lates, b.heard = 0, 0, r.At
		c.calls++
		return false
	}
	if !r.Again {
		c.calls++
		c.failed++
	}
	if b.row == 0 || r.Started >= b.rowEnd {
		b.row, b.rowEnd = b.row+1, r.At
	}
	calls, failed := c.calls+b.cells[1].calls, c.failed+b.cells[1].failed
	inRow := b.row >= TripRow && (!b.Parts || calls == failed)
	if inRow || calls >= tripCalls && failed*100 >= calls*tripFailed {
		b.enter(r.At, Degraded, r.Why)
		return true
	}
	return false
}

// Late takes in that a call sent then has no answer yet, and says whether the store
// now counts as away.
func (b *Breaker) Late(t, sent, silence time.Duration) (tripped bool) {
	if b.State != Shared || sent < b.heard {
		return false
	}
	if b.lates == 0 {
		b.quiet, b.noted = sent, t
	}
	// A process that stalled finds its calls late all at once, with their answers unread.
	if b.lates++; b.lates < TripRow || t-b.quiet < silence || t-b.noted < silence/2 {
		return false
	}
	b.enter(t, Degraded, WhyTimeout)
	return true
}

// roll returns the cell of t, ageing the other.
func (b *Breaker) roll(t time.Duration) *cell {
	switch age := t - b.cells[0].from; {
	case age >= 2*cellLength:
		b.cells = [2]cell{{from: t}, {}}
	case age >= cellLength:
		b.cells = [2]cell{{from: b.cells[0].from + cellLength}, b.cells[0]}
	}
	return &b.cells[0]
}

// Probed takes in a probe's result and says whether the state changed.
func (b *Breaker) Probed(t time.Duration, why Why) (changed bool) {
	if why != WhyNothing {
		b.tries++
		b.passed = 0
		changed = b.State == Probing
		b.State, b.Why = Degraded, why
		return changed
	}
	if b.passed++; b.passed < closeRow {
		b.State = Probing
		return true
	}
	b.enter(t, Shared, WhyNothing)
	return true
}

func (b *Breaker) enter(t time.Duration, s State, why Why) {
	*b = Breaker{Parts: b.Parts, State: s, Why: why, Since: t}
}

// Delay is how long until the next probe: a second look soon after the first,
// else doubling with full jitter, so that a fleet does not knock in step.
func (b *Breaker) Delay() time.Duration {
	if b.passed > 0 {
		return minProbe / 4
	}
	return RetryDelay(b.tries)
}

// RetryDelay is a random time up to 200 ms doubled for every try, a second at most.
func RetryDelay(tries int) time.Duration {
	top := min(maxProbe, minProbe<<min(tries, 8))
	return minProbe/8 + rand.N(top)
}
