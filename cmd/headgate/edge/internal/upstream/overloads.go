package upstream

import (
	"sync"
	"sync/atomic"
	"time"
)

// overloads tells how many of the latest answers were overloads.
type overloads struct {
	answers atomic.Uint64

	mu    sync.Mutex
	since time.Time // the counts began then
	first uint64    // answers at that time
	bad   uint64    // overloads from then on
}

const (
	overloadSpan  = time.Second
	overloadFew   = 10  // answers that say nothing yet
	overloadShare = 0.1 // below: an accident
)

func (o *overloads) answer() { o.answers.Add(1) }

// overload counts an overload at now, and reports whether they are many.
func (o *overloads) overload(now time.Time) bool {
	total := o.answers.Add(1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.since) >= 2*overloadSpan {
		o.since, o.first, o.bad = now, total-1, 0
	}
	o.bad++
	seen, bad := total-o.first, o.bad
	if now.Sub(o.since) >= overloadSpan {
		o.since, o.first, o.bad = now, total, 0
	}
	return seen >= overloadFew && float64(bad) >= overloadShare*float64(seen)
}
