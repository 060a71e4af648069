package admission

import (
	"sync"

	"github.com/headgate-go/headgate/ratelimit"
)

// limitKey is the caller in the terms of the limiters.
func (c Caller) limitKey() ratelimit.Key {
	return ratelimit.Key{Space: c.Space, ID: c.Key, Plan: c.Plan}
}

// share is the most work the caller may have in flight; zero: no cap.
func (v *visit) share() int { return v.TenantCap }

// tenantShares counts each caller's work in flight. It holds only callers that have
// some, so the slots of the pools bound it.
type tenantShares struct {
	mu      sync.Mutex
	running map[ratelimit.Key]int
}

func newTenantShares() *tenantShares {
	return &tenantShares{running: make(map[ratelimit.Key]int)}
}

// enter counts one more of the caller's, or refuses when it has the most already.
// With force it counts in any case.
func (s *tenantShares) enter(id ratelimit.Key, most int, force bool) bool {
	id.Plan = "" // not part of who it is
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.running[id]
	if n < most || force {
		s.running[id] = n + 1
	}
	return n < most
}

func (s *tenantShares) leave(id ratelimit.Key) {
	id.Plan = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.running[id]; n > 1 {
		s.running[id] = n - 1
	} else {
		delete(s.running, id)
	}
}
