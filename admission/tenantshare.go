package admission

import (
	"sync"

	"github.com/headgate-go/headgate/shed"
)

// tenantShares counts each caller's work in flight, in all pools and in each. It
// holds only callers that have some, so the slots of the pools bound it.
type tenantShares struct {
	mu      sync.Mutex
	running map[sharer]int
}

// sharer is a caller in a pool, whatever its plan.
type sharer struct {
	pool      *pool // nil: in all of them
	space, id string
}

func newTenantShares() *tenantShares {
	return &tenantShares{running: make(map[sharer]int)}
}

// enter counts one more of the caller's, or refuses when it has the most already.
// With force it counts in any case.
func (s *tenantShares) enter(who sharer, most int, force bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.running[who]
	if n < most || force {
		s.running[who] = n + 1
	}
	return n < most
}

func (s *tenantShares) leave(who sharer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.running[who]; n > 1 {
		s.running[who] = n - 1
	} else {
		delete(s.running, who)
	}
}

// withinShares counts the visit under CallerCap, and under its plan's share of the
// pool.
func (v *visit) withinShares(shadow bool) bool {
	if v.CallerCap > 0 {
		v.capped = v.gate.shares.enter(v.sharer(nil), v.CallerCap, shadow)
		if !v.capped && !v.over(shed.CallerCap) {
			return false
		}
		v.capped = true
	}
	if v.share <= 0 {
		return true
	}
	v.sharing = v.gate.shares.enter(v.sharer(v.at), v.slots(v.at.slots.Limit()), shadow)
	if !v.sharing && !v.over(shed.CallerCap) {
		return false
	}
	v.sharing = true
	return true
}

func (v *visit) sharer(in *pool) sharer {
	return sharer{pool: in, space: v.taken.key.Space, id: v.taken.key.ID}
}

// leaveShares takes the visit off its caller's counts.
func (v *visit) leaveShares() {
	if v.capped {
		v.gate.shares.leave(v.sharer(nil))
	}
	if v.sharing {
		v.gate.shares.leave(v.sharer(v.at))
	}
}
