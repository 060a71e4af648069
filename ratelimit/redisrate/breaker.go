package redisrate

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
	tripRow    = 3  // failures one after another
	tripCalls  = 5  // or of so many calls in a second
	tripFailed = 50 // this many per cent
	closeRow   = 2  // answered probes

	minProbe = 200 * time.Millisecond
	maxProbe = time.Second
)

// breaker decides when the store counts as away. It trips on a ratio, because a
// busy process fails more often than an idle one at equal health; and on failures
// in a row, each begun after the one before was known, because a stall of this
// process makes many calls fail at once and says nothing about the store.
type breaker struct {
	parts  bool // the store can be away in parts
	state  State
	why    Why // of the last failure; WhyNothing while Shared
	since  time.Duration
	row    int
	rowEnd time.Duration
	heard  time.Duration // last answer
	quiet  time.Duration // when the first call after it was sent that is late
	lates  int           // late calls since, one after another
	cells  [2]cell       // the half second now, and the one before
	tries  int           // failed probes
	passed int           // answered probes
}

type cell struct {
	from          time.Duration
	calls, failed int
}

// result is what became of a call.
type result struct {
	at, started time.Duration
	why         Why
	again       bool // of a key that the store was away for already
}

const cellLength = 500 * time.Millisecond

// record takes in a call's result and says whether the store now counts as away.
// Keys that are away look for the store again and again; they count only in a row,
// or a part of a cluster would take the whole with it.
func (b *breaker) record(r result) (tripped bool) {
	if b.state != Shared {
		return false
	}
	c := b.roll(r.at)
	if r.why == WhyNothing {
		b.row, b.lates, b.heard = 0, 0, r.at
		c.calls++
		return false
	}
	if !r.again {
		c.calls++
		c.failed++
	}
	if b.row == 0 || r.started >= b.rowEnd {
		b.row, b.rowEnd = b.row+1, r.at
	}
	calls, failed := c.calls+b.cells[1].calls, c.failed+b.cells[1].failed
	inRow := b.row >= tripRow && (!b.parts || calls == failed)
	if inRow || calls >= tripCalls && failed*100 >= calls*tripFailed {
		b.enter(r.at, Degraded, r.why)
		return true
	}
	return false
}

// late takes in that a call sent then has no answer yet, and says whether the store
// now counts as away.
func (b *breaker) late(t, sent, silence time.Duration) (tripped bool) {
	if b.state != Shared || sent < b.heard {
		return false
	}
	if b.lates == 0 {
		b.quiet = sent
	}
	if b.lates++; b.lates < tripRow || t-b.quiet < silence {
		return false
	}
	b.enter(t, Degraded, WhyTimeout)
	return true
}

// roll returns the cell of t, ageing the other.
func (b *breaker) roll(t time.Duration) *cell {
	switch age := t - b.cells[0].from; {
	case age >= 2*cellLength:
		b.cells = [2]cell{{from: t}, {}}
	case age >= cellLength:
		b.cells = [2]cell{{from: b.cells[0].from + cellLength}, b.cells[0]}
	}
	return &b.cells[0]
}

// probed takes in a probe's result and says whether the state changed.
func (b *breaker) probed(t time.Duration, why Why) (changed bool) {
	if why != WhyNothing {
		b.tries++
		b.passed = 0
		changed = b.state == Probing
		b.state, b.why = Degraded, why
		return changed
	}
	if b.passed++; b.passed < closeRow {
		b.state = Probing
		return true
	}
	b.enter(t, Shared, WhyNothing)
	return true
}

func (b *breaker) enter(t time.Duration, s State, why Why) {
	*b = breaker{parts: b.parts, state: s, why: why, since: t}
}

// delay is how long until the next probe: a second look soon after the first,
// else doubling with full jitter, so that a fleet does not knock in step.
func (b *breaker) delay() time.Duration {
	if b.passed > 0 {
		return minProbe / 4
	}
	return retryDelay(b.tries)
}

// retryDelay is a random time up to 200 ms doubled for every try, a second at most.
func retryDelay(tries int) time.Duration {
	top := min(maxProbe, minProbe<<min(tries, 8))
	return minProbe/8 + rand.N(top)
}
