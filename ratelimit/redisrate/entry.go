package redisrate

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

// entry is a key in this process: its account, the lock, and who waits for calls in
// flight.
type entry struct {
	link *link
	key  ratelimit.Key
	name string // in the store
	last bool   // the one that newcomers share when there is no room for another

	mu       sync.Mutex
	account  account.Account
	calls    []*call       // in flight and not late, oldest first
	news     chan struct{} // closed when the account has an answer; nil if no request waits
	waiters  int
	need     int // tokens they wait for, all together
	least    int // the smallest of them
	patience time.Duration
	timer    bool // a flush is due
}

func newEntry(k *link, key ratelimit.Key) *entry {
	key.Units = nil // of one request; the entry outlives it
	return &entry{
		link: k, key: key,
		name:    store.BucketKey(k.conf.name, key),
		account: account.New(k.conf.forPlan(key.Plan), k.view()),
	}
}

// call is one call in flight. All requests that need its answer wait for it.
type call struct {
	started time.Duration
	serial  int64
	again   bool         // the key was away already: no news of the store's health
	sent    atomic.Int64 // like started, plus one; 0 while it waits for its turn
}

// sentAt returns when the call had its turn, and whether it has had it.
func (c *call) sentAt() (time.Duration, bool) {
	at := c.sent.Load()
	return time.Duration(at - 1), at > 0
}

// newsLocked returns what is closed at the next answer.
func (e *entry) newsLocked() chan struct{} {
	if e.news == nil {
		e.news = make(chan struct{})
	}
	return e.news
}

func (e *entry) tellLocked() {
	if e.news != nil {
		close(e.news)
		e.news = nil
	}
}

// landLocked takes a call off the list, where it is unless it was late.
func (e *entry) landLocked(c *call) {
	if i := slices.Index(e.calls, c); i >= 0 {
		e.calls = slices.Delete(e.calls, i, i+1)
	}
}

// joinLocked registers a request that waits for cost tokens.
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
func (e *entry) planLocked(plan string) {
	if plan == e.key.Plan || e.last {
		return
	}
	e.key.Plan = plan
	c := e.link.conf.forPlan(plan)
	e.account.Adopt(c, e.link.view())
}
