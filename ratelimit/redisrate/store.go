package redisrate

import (
	"context"
	"time"
)

// store is all that the rest of this package knows of Redis: three calls, each
// one script on one key. It is implemented by redisStore, and in memory by tests.
type store interface {
	// Lease changes one key's bucket and asks it for slots.
	Lease(ctx context.Context, r request) (reply, error)
	// Beat says that id is alive, or with leave that it is gone, and returns how
	// many share the ceiling called name.
	Beat(ctx context.Context, name, id string, life time.Duration, leave bool) (int, error)
	// Parts says that keys live in places that can be away one by one.
	Parts() bool
	// Close gives up connections.
	Close() error
}

const micro = 1_000_000 // micro-tokens in a token

// limit is a pair of numbers, and which configuration they come from.
type limit struct {
	rate    float64 // tokens per second
	burst   int     // most tokens at once
	version int64   // the higher one wins
}

// request is one call. Balances in the store are micro-tokens.
type request struct {
	key     string
	serial  int64 // numbers the calls for a key in this process; not sent
	limit   limit
	want    int           // slots asked for
	need    int           // of them, for requests that wait
	least   int           // with fewer than this, none
	share   int           // beyond this and need, at most half of what is free
	reserve int64         // micro-tokens that the balance may go below zero
	life    time.Duration // after which slots granted here have perished; 0 in a call per admission
	gone    int           // slots spent, perished or returned since the last call
	debit   int64         // micro-tokens spent elsewhere: taken, but not below empty
	lack    int64         // micro-tokens that must be missing from a full bucket
	charge  int64         // micro-tokens to take in any case; negative returns them
	pause   time.Duration // nobody gets a slot before it has passed
	cut     float64       // factor for the multiplier, once per epoch; 0 for none
	seen    int64         // epoch in which the reason for the cut was met; -1 if unknown
	touch   bool          // write even when nothing changes: a probe
}

// reply is the bucket after a call.
type reply struct {
	granted    int
	before     int64         // micro-tokens when the grant was made
	limit      limit         // the numbers in force
	multiplier float64       // of the rate, in (0, 1]
	pause      time.Duration // until a slot can be used
	epoch      int64         // of the multiplier
}
