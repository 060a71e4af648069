package account

import "time"

// Micro is how many micro-tokens make a token.
const Micro = 1_000_000

// Limit is a pair of numbers, and which configuration they come from.
type Limit struct {
	Rate    float64 // tokens per second
	Burst   int     // most tokens at once
	Version int64   // the higher one wins
}

// Request is one call. Balances in the store are micro-tokens.
type Request struct {
	Key     string
	Serial  int64 // numbers the calls for a key in this process; not sent
	Limit   Limit
	Want    int           // slots asked for
	Need    int           // of them, for requests that wait
	Least   int           // with fewer than this, none
	Share   int           // beyond this and need, at most half of what is free
	Reserve int64         // micro-tokens that the balance may go below zero
	Life    time.Duration // after which slots granted here have perished; 0 in a call per admission
	Gone    int           // slots spent, perished or returned since the last call
	Debit   int64         // micro-tokens spent elsewhere: taken, but not below empty
	Missing int64         // micro-tokens missing from the share: more of Debit is taken only
	Filling float64       // as far as the share, in tokens per second, refilled since the bucket was full
	Charge  int64         // micro-tokens to take in any case; negative returns them
	Bill    int64         // numbers Debit and a positive Charge; 0 for none
	Payer   string        // where the bucket keeps what this process paid of its last bill
	Pause   time.Duration // no slot is usable before it has passed
	Cut     float64       // factor for the multiplier, once per epoch; 0 for none
	Seen    int64         // epoch in which the reason for the cut was met; -1 if unknown
	Touch   bool          // write even when nothing changes: a probe
}

// Reply is the bucket after a call.
type Reply struct {
	Granted    int
	Before     int64         // micro-tokens when the grant was made
	Limit      Limit         // the numbers in force
	Multiplier float64       // of the rate, in (0, 1]
	Pause      time.Duration // until a slot can be used
	Epoch      int64         // of the multiplier
}

// PPM writes a factor in millionths; none is a factor of one.
func PPM(factor float64) int64 {
	if factor <= 0 || factor >= 1 {
		return Micro
	}
	return int64(factor * Micro)
}
