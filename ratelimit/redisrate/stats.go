package redisrate

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// Stats is a limiter at one moment: what is in force, where it stands with its
// store, and counters since it was made.
type Stats struct {
	Name  string
	State State
	Why   Why           // what was wrong with the store; WhyNothing while Shared
	Since time.Duration // how long State has lasted

	Peers      int     // processes that share the ceiling; 0 until the first beat was answered
	Rate       float64 // configured, tokens per second for a key
	Burst      int
	ShareRate  float64 // what this process admits for a key while the store is away
	ShareBurst float64
	Leasing    bool          // keys with the default numbers use leases
	LeaseSize  int           // slots in a lease
	Reserve    int           // slots that all processes together may hold ahead of the rate
	Interval   time.Duration // what a lease covers at this number of processes

	Keys     int    // tracked here
	AwayKeys int    // of them, decided by the share
	Held     int    // slots held
	Full     uint64 // newcomers the table had no room for

	Decisions [ratelimit.SourceCount]struct{ Admitted, Refused uint64 } // by source
	Never     uint64                                                    // refused for good: cost above the burst
	Calls     [WhyCount]uint64                                          // to the store, by result; Calls[0] were answered
	CallTime  time.Duration                                             // spent in them, all together
	Wasted    uint64                                                    // slots that perished
	Changes   uint64                                                    // of State
}

// Degraded says that the store is away, for all keys or for some.
func (s Stats) Degraded() bool { return s.State != Shared || s.AwayKeys > 0 }

// Key is one key at one moment.
type Key struct {
	Rate       float64       // in force, tokens per second: the store's numbers, lowered by Multiplier
	Burst      int           // in force
	Version    int64         // of the configuration in force
	Multiplier float64       // what throttling left of the rate, in (0, 1]
	Paused     time.Duration // until something may pass
	Epoch      int64         // of the multiplier; one cut each
	Held       int           // slots held here
	Balance    float64       // tokens in the bucket when last heard; negative: slots handed out ahead
	Heard      time.Duration // since then; negative: never
	Away       bool          // the share decides
	Share      float64       // tokens in the share, while it decides
}

// Stats implements ratelimit.Counter: the table, as of a limiter in memory, and the
// store behind it. It visits all keys.
func (l *Limiter) Stats() ratelimit.Stats {
	if l.bad != nil {
		return ratelimit.Stats{}
	}
	return ratelimit.Stats{
		Keys: int(l.table.count.Load()), Peak: int(l.table.peak.Load()),
		MaxKeys: l.conf.maxKeys, Overflow: l.table.full.Load(),
		Stores: []ratelimit.StoreStats{l.StoreStats()},
	}
}

// counts are the counters behind Stats.
type counts struct {
	decisions [ratelimit.SourceCount][2]atomic.Uint64
	never     atomic.Uint64
	calls     [WhyCount]atomic.Uint64
	callTime  atomic.Int64
	changes   atomic.Uint64
}

func (c *counts) decided(d ratelimit.Decision) {
	switch {
	case d.Never:
		c.never.Add(1)
	case d.OK:
		c.decisions[d.Source][0].Add(1)
	default:
		c.decisions[d.Source][1].Add(1)
	}
}

func (c *counts) called(w Why, took time.Duration) {
	c.calls[w].Add(1)
	c.callTime.Add(int64(took))
}

// Snapshot returns the limiter's state and counters. It visits all keys: for a
// scrape, not for a request.
func (l *Limiter) Snapshot() Stats {
	c := l.conf
	s := Stats{Name: c.name, Rate: c.limit.rate, Burst: c.limit.burst}
	if l.bad != nil {
		return s
	}
	l.health.Lock()
	s.State, s.Why, s.Since = l.health.state, l.health.why, l.now()-l.health.since
	l.health.Unlock()
	s.Peers = l.peers.count()
	part := c.portion / float64(max(1, c.minPeers, s.Peers))
	s.ShareRate, s.ShareBurst = c.limit.rate*part, max(1, float64(c.limit.burst)*part)
	terms := c.law.terms(c.limit.rate, c.limit.burst, l.view())
	s.Leasing, s.LeaseSize, s.Reserve, s.Interval = terms.leasing, terms.q, terms.reserve, terms.tau
	s.Keys, s.Full = int(l.table.count.Load()), l.table.full.Load()
	l.table.each(func(e *entry) {
		e.mu.Lock()
		defer e.mu.Unlock()
		s.Held += e.account.held
		s.Wasted += e.account.wasted
		if e.account.away {
			s.AwayKeys++
		}
	})
	l.counts.into(&s)
	return s
}

func (c *counts) into(s *Stats) {
	for i := range c.decisions {
		s.Decisions[i].Admitted = c.decisions[i][0].Load()
		s.Decisions[i].Refused = c.decisions[i][1].Load()
	}
	for i := range c.calls {
		s.Calls[i] = c.calls[i].Load()
	}
	s.Never, s.CallTime, s.Changes = c.never.Load(), time.Duration(c.callTime.Load()), c.changes.Load()
}

// Key returns what is known of one key, and whether it is tracked here.
func (l *Limiter) Key(key ratelimit.Key) (Key, bool) {
	if l.bad != nil {
		return Key{}, false
	}
	e := l.table.find(key)
	if e == nil {
		return Key{}, false
	}
	t := l.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &e.account
	in := a.inForceNow()
	k := Key{
		Rate: in.rate, Burst: in.burst, Version: in.version, Multiplier: a.multiplier, Epoch: a.epoch,
		Paused: max(0, a.pause-t), Held: a.held, Balance: a.balance, Heard: t - a.heard,
		Away: a.away, Share: a.share.tokens,
	}
	if !a.known {
		k.Heard = -1
	}
	return k, true
}

// Health reports whether the ceiling is shared. While the store is away it
// returns a warning text. That is no reason to call a process unready: taking
// processes away for a store's sake would turn its outage into one of the service.
func (l *Limiter) Health() (warning string, ok bool) {
	if l.bad != nil {
		return l.bad.Error(), false
	}
	l.health.Lock()
	state, why, since := l.health.state, l.health.why, l.health.since
	l.health.Unlock()
	if state == Shared {
		return "", true
	}
	return fmt.Sprintf("shared ceiling %q is %s (%s) for %s; requests are decided by policy %q",
		l.conf.name, state, why, (l.now() - since).Round(time.Second), l.conf.outage), false
}
