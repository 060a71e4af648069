package redisrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrFull says that all slots are taken.
var ErrFull = errors.New("redisrate: all slots are taken")

// Slots is a cap on work in flight, shared by many processes: for quotas that are
// counts, such as "20 exports at a time", rather than rates. Each permit is a
// token in Redis with a time to live, renewed at a third of it, so that the slots
// of a process that dies come free by themselves; a token is removed only by its
// owner. While the store is away each process keeps to its part of the cap (see
// SlotsOutage), and its permits are entered when the store is back.
//
// TryAcquire costs a call, Release another that nobody waits for. Slots is safe
// for concurrent use. Close it when it is not needed any more.
type Slots struct {
	conf  *slotsConfig
	bad   error
	store *redisStore
	owner string
	peers peers
	turn  chan struct{} // only one waits at the store for a slot to come free

	mu     sync.Mutex
	held   map[string]*Permit
	serial uint64
	inUse  int // slots taken in all processes, as last heard
	away   bool
	why    Why
	tries  int
	tick   *time.Timer
	closed bool
}

// Permit is a slot that is taken. Release it once the work is done.
type Permit struct {
	slots  *Slots
	token  string
	known  bool      // the store has it
	until  time.Time // it lapses, unless renewed
	lost   chan struct{}
	closed bool
}

// SlotsOption sets something that has a default.
type SlotsOption func(*slotsConfig)

// SlotsTTL is how long a permit outlives its process. The default is 10 s.
func SlotsTTL(d time.Duration) SlotsOption { return func(c *slotsConfig) { c.ttl = d } }

// SlotsOutage says what happens while the store is away: FailShare (the default)
// gives each process its part of the cap, at least one, counting what it holds.
func SlotsOutage(o Outage) SlotsOption { return func(c *slotsConfig) { c.outage = o } }

// SlotsMinPeers is MinPeers for a cap.
func SlotsMinPeers(n int) SlotsOption { return func(c *slotsConfig) { c.minPeers = n } }

type slotsConfig struct {
	name     string
	most     int
	ttl      time.Duration
	outage   Outage
	minPeers int
	budget   time.Duration
}

// NewSlots returns a cap of most permits at a time, shared by all processes that
// use the same Redis and name. It does not connect. What is wrong is reported by
// Validate; such a cap admits nothing. Clients are treated as by PerKey.
func NewSlots(rdb redis.UniversalClient, name string, most int, options ...SlotsOption) *Slots {
	c := slotsConfig{name: name, most: most, ttl: 10 * time.Second, minPeers: 1, budget: 100 * time.Millisecond}
	for _, set := range options {
		set(&c)
	}
	s := &Slots{conf: &c, bad: errors.Join(present(rdb), c.validate())}
	if s.bad == nil {
		s.store, s.owner, s.peers = newRedisStore(rdb, c.budget), rand.Text(), newPeers()
		s.turn, s.held = make(chan struct{}, 1), map[string]*Permit{}
	}
	return s
}

func (c *slotsConfig) validate() error {
	switch {
	case c.name == "":
		return errors.New("redisrate: name of slots is empty")
	case c.most < 1 || c.most > maxBurst:
		return fmt.Errorf("redisrate: cap of slots %d is not between 1 and 1e9", c.most)
	case c.ttl < time.Second || c.ttl > time.Hour:
		return fmt.Errorf("redisrate: SlotsTTL %v is not between 1s and 1h", c.ttl)
	case c.outage > FailClosed:
		return fmt.Errorf("redisrate: SlotsOutage %d is not one of the policies", c.outage)
	case c.minPeers < 1:
		return fmt.Errorf("redisrate: SlotsMinPeers %d is below 1", c.minPeers)
	}
	return nil
}

// Validate reports what is wrong with the configuration, naming the field.
func (s *Slots) Validate() error { return s.bad }

// TryAcquire takes a slot if one is free, else returns ErrFull. It waits for one
// call, 100 ms at most, and not at all while the store is away.
func (s *Slots) TryAcquire(ctx context.Context) (*Permit, error) {
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
func (s *Slots) Acquire(ctx context.Context) (*Permit, error) {
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
		p, err := s.TryAcquire(ctx)
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
func (s *Slots) begin() *Permit {
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

func (s *Slots) newLocked() *Permit {
	s.serial++
	return &Permit{slots: s, token: s.owner + "." + strconv.FormatUint(s.serial, 36), lost: make(chan struct{})}
}

// local decides while the store is away.
func (s *Slots) local() (*Permit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := max(1, s.conf.most/max(1, s.conf.minPeers, s.peers.count()))
	if s.closed || s.conf.outage == FailClosed || s.conf.outage == FailShare && len(s.held) >= part {
		return nil, ErrFull
	}
	p := s.newLocked()
	s.held[p.token] = p
	return p, nil
}

// Release gives the slot back. It does not wait; calling it again does nothing.
func (p *Permit) Release() {
	s := p.slots
	s.mu.Lock()
	_, mine := s.held[p.token]
	delete(s.held, p.token)
	tell := mine && p.known && !s.away
	s.mu.Unlock()
	if tell {
		go func() { _, _ = s.call(context.Background(), "give", p.token) }() // it lapses if this is lost
	}
}

// Lost is closed when the slot may have passed to somebody else: the store could
// not be told in time that it is still in use. Work that must not exceed the cap
// ends then; other work need not look.
func (p *Permit) Lost() <-chan struct{} { return p.lost }

// Close releases what is held and ends renewals. Permits are not lost by it.
func (s *Slots) Close() error {
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
