package top

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// outcomes is the number of [shed.Outcome]s.
const outcomes = int(shed.Unmeasured) + 1

// routesMost bounds how many routes are told apart.
const routesMost = 100

// Rest is the pattern under which the routes beyond the bound are counted.
const Rest = "other"

// Routes counts visits by route. Patterns come from code and from files, never from a
// client, and still are bounded, since a router might make them up. The zero value is
// empty and ready. It is safe for concurrent use; counting takes no lock.
type Routes struct {
	mu    sync.Mutex // held while a route is added
	known atomic.Pointer[map[string]*Route]
}

// Route counts the visits of one pattern.
type Route struct {
	Pattern  string
	visits   [priority.Count][shed.ReasonCount]atomic.Uint64
	outcomes [priority.Count][outcomes]atomic.Uint64
	held     atomic.Int64
}

// Of returns the counts of a pattern.
func (rs *Routes) Of(pattern string) *Route {
	if known := rs.known.Load(); known != nil {
		if r := (*known)[pattern]; r != nil {
			return r
		}
	}
	return rs.add(pattern)
}

func (rs *Routes) add(pattern string) *Route {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	next := map[string]*Route{}
	if known := rs.known.Load(); known != nil {
		next = maps.Clone(*known)
	}
	if next[pattern] == nil && len(next) >= routesMost {
		pattern = Rest
	}
	if r := next[pattern]; r != nil {
		return r
	}
	r := &Route{Pattern: pattern}
	next[pattern] = r
	rs.known.Store(&next)
	return r
}

// Refused counts a visit that ended without work, and says how many visits it stands
// for in a List; see sample.
func (r *Route) Refused(l priority.Level, why shed.Reason) uint64 {
	return sample(r.visits[l.Index()][why].Add(1))
}

// Ended counts the end of admitted work, which held its slot for so long, and says how
// many visits it stands for in a List.
func (r *Route) Ended(l priority.Level, o shed.Outcome, held time.Duration) uint64 {
	r.held.Add(int64(held))
	return sample(r.outcomes[l.Index()][min(int(o), outcomes-1)].Add(1))
}

// One visit in sampled is noted in a List, and stands for as many, once exact have been
// noted each: a List has a lock, which a busy gate must not meet at every visit.
const (
	exact   = 1024
	sampled = 16
)

func sample(n uint64) uint64 {
	switch {
	case n <= exact:
		return 1
	case n%sampled == 0:
		return sampled
	}
	return 0
}

// RouteCounts is a snapshot of a route's counts.
type RouteCounts struct {
	Pattern  string
	Visits   [priority.Count][shed.ReasonCount]uint64 // by level and reason; work that has ended counts as Admitted
	Outcomes [outcomes]uint64                         // of admitted work, by shed.Outcome
	Held     time.Duration                            // slot time, in all
}

// All returns a snapshot of every route, by pattern.
func (rs *Routes) All() (all []RouteCounts) {
	known := rs.known.Load()
	if known == nil {
		return nil
	}
	for _, r := range *known {
		all = append(all, r.read())
	}
	slices.SortFunc(all, func(a, b RouteCounts) int { return cmp.Compare(a.Pattern, b.Pattern) })
	return all
}

func (r *Route) read() RouteCounts {
	c := RouteCounts{Pattern: r.Pattern, Held: time.Duration(r.held.Load())}
	for l := range r.visits {
		for why := range r.visits[l] {
			c.Visits[l][why] = r.visits[l][why].Load()
		}
	}
	for l := range r.outcomes {
		for o := range r.outcomes[l] {
			n := r.outcomes[l][o].Load()
			c.Outcomes[o] += n
			c.Visits[l][shed.Admitted] += n
		}
	}
	return c
}
