package sockets

import (
	"slices"
	"sync"
	"time"
)

// tally books what the client of one pass saw, by the phase in which a request first
// arrived and by its kind.
type tally struct {
	scenario *Scenario

	mu    sync.Mutex
	cells [][]cell // by phase, by kind
	bins  [][]bin  // by time of arrival, by kind
}

// arrival is a request, however often it is sent.
type arrival struct {
	phase, kind int
	at          time.Duration // since the start
}

// cell is what became of the requests of one kind in one phase.
type cell struct {
	offered int
	served  int // within the client's patience
	failed  int // left without an answer, or with a useless one
	took    []time.Duration
	refused []time.Duration // how long each refusal took
	later   []time.Duration // of those, of requests that came after the phase's first seconds
}

// bin is a short stretch of time, for the plot.
type bin struct{ offered, served int }

// settling is the time after a change in which work that was waiting before it may still
// be refused late.
const settling = 2 * time.Second

const binWidth = 250 * time.Millisecond

func newTally(s *Scenario) *tally {
	t := &tally{scenario: s, cells: make([][]cell, len(s.Phases)), bins: make([][]bin, s.length()/binWidth+1)}
	for i := range t.cells {
		t.cells[i] = make([]cell, len(s.Kinds))
	}
	for i := range t.bins {
		t.bins[i] = make([]bin, len(s.Kinds))
	}
	return t
}

func (t *tally) with(a arrival, book func(*cell, *bin)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	book(&t.cells[a.phase][a.kind], &t.bins[a.at/binWidth][a.kind])
}

func (t *tally) arrive(a arrival) {
	t.with(a, func(c *cell, b *bin) { c.offered++; b.offered++ })
}

func (t *tally) serve(a arrival, took time.Duration) {
	t.with(a, func(c *cell, b *bin) {
		c.served++
		b.served++
		c.took = append(c.took, took)
	})
}

func (t *tally) refuse(a arrival, took time.Duration) {
	t.with(a, func(c *cell, _ *bin) {
		c.refused = append(c.refused, took)
		if a.at >= t.scenario.start(a.phase)+settling {
			c.later = append(c.later, took)
		}
	})
}

func (t *tally) fail(a arrival) { t.with(a, func(c *cell, _ *bin) { c.failed++ }) }

// recovery is how long into the given phase it takes until 95 % of what arrives is
// served, from then to its end; less than zero: that does not happen.
func (t *tally) recovery(phase int) time.Duration {
	start := t.scenario.start(phase)
	end := start + t.scenario.Phases[phase].Length
	for at := end - binWidth; at >= start; at -= binWidth {
		var sum bin
		for _, b := range t.bins[at/binWidth] {
			sum.offered, sum.served = sum.offered+b.offered, sum.served+b.served
		}
		if float64(sum.served) < 0.95*float64(sum.offered) {
			if at+binWidth == end {
				return -1
			}
			return at + binWidth - start
		}
	}
	return 0
}

// quantile returns the q-th quantile of what was measured, in milliseconds; 0: nothing was.
func quantile(q float64, of ...[]time.Duration) float64 {
	all := slices.Concat(of...)
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[int(q*float64(len(all)-1)+0.5)]) / float64(time.Millisecond)
}
