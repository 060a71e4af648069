package redisrate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// entry is a key in this process: its account, the lock, and who waits for the
// call in flight.
type entry struct {
	key  ratelimit.Key
	name string // in the store
	last bool   // the one that newcomers share when there is no room for another

	mu       sync.Mutex
	account  account
	call     *call
	waiters  int
	need     int // tokens they wait for, all together
	least    int // the smallest of them
	patience time.Duration
	timer    bool // a flush is due
}

// call is one call in flight. Everybody who needs its answer waits for it, so
// there is at most one for a key.
type call struct {
	done    chan struct{} // closed when the account has the answer
	started time.Duration
	again   bool         // the key was away already: no news of the store's health
	sent    atomic.Int64 // like started, plus one; 0 while it waits for its turn
	counted atomic.Bool  // the health of the store has heard of it
}

// sentAt returns when the call had its turn, and whether it has had it.
func (c *call) sentAt() (time.Duration, bool) {
	at := c.sent.Load()
	return time.Duration(at - 1), at > 0
}

// joinLocked registers somebody who waits for cost tokens.
func (e *entry) joinLocked(cost int, patience time.Duration) {
	if e.waiters == 0 {
		e.least, e.patience = cost, 0
	}
	e.waiters++
	e.need += cost
	e.least, e.patience = min(e.least, cost), max(e.patience, patience)
}

func (e *entry) leaveLocked(cost int) {
	e.waiters--
	e.need -= cost
}

// planLocked adopts the numbers of the caller's plan; the balance stays.
func (e *entry) planLocked(l *Limiter, plan string) {
	if plan == e.key.Plan || e.last {
		return
	}
	e.key.Plan = plan
	c := l.conf.forPlan(plan)
	if c.limit == e.account.conf.limit {
		return
	}
	e.account.conf = c
	e.account.inForce, e.account.known, e.account.next = c.limit, false, 0
	e.account.retune(l.peers.count())
}
