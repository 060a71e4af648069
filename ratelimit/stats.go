package ratelimit

import (
	"time"

	"golang.org/x/time/rate"
)

// Stats are a limiter's numbers for gauges. Reading them costs a few atomic loads;
// limits shared through a store visit their keys.
type Stats struct {
	Keys      int    // buckets in memory now, within the bound
	Extra     int    // buckets beyond it: of keys charged after the fact while the table was full, or from before the bound was lowered
	Peak      int    // most buckets at once, within the bound
	MaxKeys   int    // the bound on buckets
	Overflow  uint64 // decisions made by the bucket that newcomers share at the bound
	Uncharged uint64 // charges after the fact that were lost: the key had no bucket, and there was no room for one
	Shadowed  uint64 // requests a limit in shadow would have refused

	Stores []StoreStats // of the limits shared through a store
}

// Add makes s the sum of both.
func (s *Stats) Add(o Stats) {
	s.Keys += o.Keys
	s.Extra += o.Extra
	s.Peak += o.Peak
	s.MaxKeys += o.MaxKeys
	s.Overflow += o.Overflow
	s.Uncharged += o.Uncharged
	s.Shadowed += o.Shadowed
	s.Stores = append(s.Stores, o.Stores...)
}

// StoreStats describe a limiter whose ceiling is shared through a store: where it
// stands with the store, and what it decides by. Counters only grow.
type StoreStats struct {
	Name  string        // of the shared limit: limiters of one name share one ceiling
	State string        // "shared" while the store answers; else what is done about it
	Why   string        // what was wrong with the store; empty while shared
	Since time.Duration // how long State has lasted

	Degraded bool // the store is away, for all keys or for some
	Peers    int  // processes that share the ceiling; 0: not known yet

	Rate       rate.Limit // the ceiling of a key, in tokens per second
	Burst      int
	ShareRate  rate.Limit // what this process admits of it while the store is away
	ShareBurst int

	Keys     int // tracked here
	AwayKeys int // of them, decided by the share

	Calls    []StoreCalls  // to the store, by result; the same results in every snapshot
	CallTime time.Duration // spent in them, all together
	Wasted   uint64        // leased slots that perished unused
	Changes  uint64        // of State
}

// StoreCalls is how many calls to a store had a result.
type StoreCalls struct {
	Result string // from a closed list; "ok": answered
	Count  uint64
}
