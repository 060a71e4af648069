// Package semaphore caps work in flight for many processes together, through Redis or
// Valkey.
package semaphore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

// ErrFull says that all slots are taken.
var ErrFull = errors.New("semaphore: all slots are taken")

// Semaphore is a cap on work in flight, shared by many processes: for quotas that are
// counts, such as "20 exports at a time", rather than rates. Each permit is a
// token in Redis with a time to live, renewed at a third of it, so that the slots
// of a process that dies come free by themselves; a token is removed only by its
// owner. While the store is away each process keeps to its part of the cap (see
// OnOutage), and its permits are entered when the store is back.
//
// Take costs a call, Release another without waiting for it. A Semaphore is safe
// for concurrent use. Close it when it is not needed any more.
type Semaphore struct {
	conf  *config
	bad   error
	store *store.Redis
	owner string
	peers account.Peers
	turn  chan struct{} // only one waits at the store for a slot to come free

	mu     sync.Mutex
	held   map[string]*Permit
	serial uint64
	inUse  int // slots taken in all processes, as last heard
	away   bool
	why    account.Why
	tries  int
	tick   *time.Timer
	closed bool
}

// Permit is a slot that is taken. Release it once the work is done.
type Permit struct {
	owner  *Semaphore
	token  string
	known  bool      // the store has it
	until  time.Time // it lapses, unless renewed
	lost   chan struct{}
	closed bool
}

// Options are what may be set. The zero value is good; negative numbers are errors from
// Validate.
type Options struct {
	TTL      time.Duration  // how long a permit outlives its process; 0: 10 s
	OnOutage ratelimit.Fail // while the store is away: FailShare gives each process its part of the cap, at least one, counting what it holds
	MinPeers int            // the least number of processes to divide the cap by meanwhile; 0: 1
}

type config struct {
	name     string
	most     int
	ttl      time.Duration
	outage   ratelimit.Fail
	minPeers int
	budget   time.Duration
}

// New returns a cap of most permits at a time, shared by all processes that
// use the same Redis and name. It does not connect. What is wrong is reported by
// Validate; such a cap admits nothing. Clients are treated as by PerKey.
func New(rdb redis.UniversalClient, name string, most int, o Options) *Semaphore {
	c := config{
		name: name, most: most, ttl: cmp.Or(o.TTL, 10*time.Second), outage: o.OnOutage, minPeers: cmp.Or(o.MinPeers, 1),
		budget: 100 * time.Millisecond,
	}
	s := &Semaphore{conf: &c, bad: errors.Join(store.Present(rdb), c.validate())}
	if s.bad == nil {
		s.store, s.owner, s.peers = store.New(rdb, c.budget), rand.Text(), account.NewPeers()
		s.turn, s.held = make(chan struct{}, 1), map[string]*Permit{}
	}
	return s
}

func (c *config) validate() error {
	switch {
	case c.name == "":
		return errors.New("semaphore: the name is empty")
	case c.most < 1 || c.most > maxCap:
		return fmt.Errorf("semaphore: the cap %d is not between 1 and 1e9", c.most)
	case c.ttl < time.Second || c.ttl > time.Hour:
		return fmt.Errorf("semaphore: TTL %v is not between 1s and 1h", c.ttl)
	case c.outage > ratelimit.FailClosed:
		return fmt.Errorf("semaphore: OnOutage %d is not one of the policies", uint8(c.outage))
	case c.minPeers < 1:
		return fmt.Errorf("semaphore: MinPeers %d is below 1", c.minPeers)
	}
	return nil
}

// maxCap is the largest cap.
const maxCap = 1_000_000_000

// Validate reports what is wrong with the configuration, naming the field.
func (s *Semaphore) Validate() error { return s.bad }

// Take takes a slot if one is free, else returns ErrFull. It waits for one
// call, 100 ms at most, and not at all while the store is away.
func (s *Semaphore) Take(ctx context.Context) (*Permit, error) {
	if s.bad != nil {
		return nil, s.bad
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := s.begin()
	if p == nil {
		return s.local()
	}
	// A deadline of its own: a caller that hangs up is not a store that is away.
	sent := time.Now()
	done, err := s.call(context.WithoutCancel(ctx), "take", p.token)
	if err != nil {
		s.fail(err)
		return s.local()
	}
	if !done[0] {
		return nil, ErrFull
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.known, p.until = true, sent.Add(s.conf.ttl)
	s.held[p.token] = p
	return p, nil
}

// Acquire waits until a slot is free or ctx ends. In one process only one waits at
// the store, looking every 10 to 250 ms; between processes there is no order.
func (s *Semaphore) Acquire(ctx context.Context) (*Permit, error) {
	if s.bad != nil {
		return nil, s.bad
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for wait := 10 * time.Millisecond; ; wait = min(wait*3/2, 250*time.Millisecond) {
		p, err := s.Take(ctx)
		if !errors.Is(err, ErrFull) {
			return p, err
		}
		select {
		case <-time.After(wait/2 + retryJitter(wait)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// begin returns a permit to ask for, or nil while the store is away.
func (s *Semaphore) begin() *Permit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tick == nil && !s.closed {
		s.tick = time.AfterFunc(0, s.renew)
	}
	if s.away || s.closed {
		return nil
	}
	return s.newLocked()
}

func (s *Semaphore) newLocked() *Permit {
	s.serial++
	return &Permit{owner: s, token: s.owner + "." + strconv.FormatUint(s.serial, 36), lost: make(chan struct{})}
}

// local decides while the store is away.
func (s *Semaphore) local() (*Permit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := max(1, s.conf.most/max(1, s.conf.minPeers, s.peers.Count()))
	if s.closed || s.conf.outage == ratelimit.FailClosed || s.conf.outage == ratelimit.FailShare && len(s.held) >= part {
		return nil, ErrFull
	}
	p := s.newLocked()
	s.held[p.token] = p
	return p, nil
}

// Release gives the slot back. It does not wait; calling it again does nothing.
func (p *Permit) Release() {
	s := p.owner
	s.mu.Lock()
	_, mine := s.held[p.token]
	delete(s.held, p.token)
	tell := mine && p.known && !s.away
	s.mu.Unlock()
	if tell {
		go func() { _, _ = s.call(context.Background(), "give", p.token) }() // it lapses if this is lost
	}
}

// Lost is closed when the slot may have passed to another process: the store could
// not be informed in time that it is still in use. Work that must not exceed the cap
// ends then; other work need not look.
func (p *Permit) Lost() <-chan struct{} { return p.lost }

// Close releases what is held and ends renewals. Permits are not lost by it.
func (s *Semaphore) Close() error {
	if s.bad != nil {
		return nil
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.tick != nil {
		s.tick.Stop()
	}
	tokens := s.tokensLocked(true)
	clear(s.held)
	s.mu.Unlock()
	if len(tokens) > 0 {
		_, _ = s.call(context.Background(), "give", tokens...)
	}
	return s.store.Close()
}
