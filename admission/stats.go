package admission

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// Stats is a snapshot of a gate: the numbers in force and what has happened since
// it was built. Each figure is exact; figures read a moment apart may differ.
type Stats struct {
	Name     string
	ID       uint64 // tells the gates of one process apart, whatever their names
	Draining bool
	Lowest   priority.Level                           // the lowest level that pressure lets in; Batch: all
	Visits   [priority.Count][shed.ReasonCount]uint64 // ended visits by level and reason; Admitted counts at admission
	Shadowed [priority.Count][shed.ReasonCount]uint64 // admitted visits that a layer in shadow mode would have refused
	Pools    []PoolStats                              // the unnamed pool first, then by name
	Limits   []LimitStats                             // those that limit anything
	Streams  int                                      // that left their slot and are open
	Limited  []LimitedCaller                          // those most refused by limits of their own lately, the most first
}

// PoolStats is a snapshot of one pool.
type PoolStats struct {
	Name string
	queue.Stats
}

// Count returns the visits of all levels that ended with the given reason.
func (s Stats) Count(r shed.Reason) (n uint64) {
	for l := range s.Visits {
		n += s.Visits[l][r]
	}
	return n
}

// InFlight returns the work that holds a slot, in all pools.
func (s Stats) InFlight() (n int) {
	for _, p := range s.Pools {
		n += p.InFlight
	}
	return n
}

// Stats returns a snapshot. It takes each pool's lock once, for a moment. On a nil
// gate it is zero.
func (g *Gate) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	c := g.config.Load()
	s := Stats{
		Name: c.Name, ID: g.id, Draining: g.draining.Load(), Limits: g.limitStats(c),
		Streams: int(g.streams.Load()), Limited: g.limited.top(time.Now()),
	}
	if s.Lowest = priority.Batch; c.gauge != nil {
		s.Lowest = c.gauge.Lowest(time.Now())
	}
	g.tally.read(&s)
	s.Pools = append(s.Pools, PoolStats{Stats: c.pool.slots.Stats()})
	for _, name := range slices.Sorted(maps.Keys(c.pools)) {
		s.Pools = append(s.Pools, PoolStats{Name: name, Stats: c.pools[name].slots.Stats()})
	}
	return s
}

// tally counts how visits ended.
type tally struct {
	visits, shadowed [priority.Count][shed.ReasonCount]atomic.Uint64
}

func (t *tally) read(s *Stats) {
	for l := range t.visits {
		for r := range t.visits[l] {
			s.Visits[l][r] = t.visits[l][r].Load()
			s.Shadowed[l][r] = t.shadowed[l][r].Load()
		}
	}
}

func (t *tally) admitted(v *visit) {
	t.visits[v.Level.Index()][shed.Admitted].Add(1)
	if v.shadow != shed.Admitted {
		t.shadowed[v.Level.Index()][v.shadow].Add(1)
	}
}
