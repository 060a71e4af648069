package admission

import (
	"sync"

	"github.com/headgate-go/headgate/ratelimit"
)

// limitKey is the caller in the terms of the limiters.
func (c Caller) limitKey() ratelimit.Key {
	return ratelimit.Key{Space: c.Space, ID: c.Key, Plan: c.Plan}
}

// tenantShares caps each caller's work in flight. It holds only callers that have
// some, so the slots of the pools bound it.
type tenantShares struct {
	most int

	mu      sync.Mutex
	running map[ratelimit.Key]int
}

func newTenantShares(most int) *tenantShares {
	return &tenantShares{most: most, running: make(map[ratelimit.Key]int)}
}

func (s *tenantShares) enter(id ratelimit.Key) bool {
	id.Plan = "" // not part of who it is
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.running[id]
	if n >= s.most {
		return false
	}
	s.running[id] = n + 1
	return true
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
