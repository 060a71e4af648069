package ratelimit

import (
	"time"

	"golang.org/x/time/rate"
)

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

// Stored is implemented by limiters whose ceiling is shared through a store.
type Stored interface {
	StoreStats() StoreStats
}
