// Package store makes the limits that several edges share through Redis.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/policy"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate"
)

// Store makes the limits that are shared through Redis, and closes those that a
// reload has left behind. What a caller has left is in Redis, so a limit made anew
// goes on where the old one stood. It is safe for concurrent use, one configuration
// being read at a time.
type Store struct {
	log *slog.Logger

	mu      sync.Mutex
	clients map[string]redis.UniversalClient
	limits  map[string]*redisrate.Limiter // by everything that is said of them
	asked   map[string]bool               // by the configuration that is being read
	inForce map[string]bool               // by the one in force
}

// New returns a Store without limits, which logs when a store goes and comes.
func New(log *slog.Logger) *Store {
	redis.SetLogger(silent{}) // of every failed dial; the limits tell when the store goes and comes
	return &Store{
		log: log, clients: map[string]redis.UniversalClient{},
		limits: map[string]*redisrate.Limiter{}, asked: map[string]bool{},
	}
}

// Limit returns the limiter for s. The same numbers get the same limiter. A store that is
// away is no error, one that can never work is.
func (st *Store) Limit(s policy.SharedLimit) (ratelimit.Limiter, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all := fmt.Sprintf("%+v", s)
	st.asked[all] = true
	if l := st.limits[all]; l != nil {
		return l, nil
	}
	client, err := st.client(s.Redis)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	options := redisrate.Options{Name: s.Name, MaxKeys: s.Keys, Logger: st.log}
	l := redisrate.Tiers(client, s.Plan, s.Plans, options)
	if err := l.Validate(); err != nil {
		return nil, err
	}
	st.limits[all] = l
	warm(l)
	return l, nil
}

// warm has the limit connect and meet the store before the first caller does: a call
// that waits for a connection takes longer than a request may wait for it, and would be
// decided by this process alone, in each of the processes that have just started. A store
// that is away costs half a second.
func warm(l *redisrate.Limiter) {
	key := ratelimit.Key{Space: "headgate", ID: "warm-up"}
	for end := time.Now().Add(warmUp); time.Now().Before(end); time.Sleep(warmUp / 50) {
		now := time.Now()
		d := l.Take(context.Background(), now, key, 1, 0)
		d.Undo(now)
		if d.Source != ratelimit.SourceShare { // the store decided
			return
		}
	}
}

const warmUp = 500 * time.Millisecond

// client returns the one for an address. A new one is tried, for a second at most.
func (st *Store) client(text string) (redis.UniversalClient, error) {
	if c := st.clients[text]; c != nil {
		return c, nil
	}
	a, err := parse(text)
	if err != nil {
		return nil, err
	}
	c, err := client(a)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := c.Ping(ctx).Err(); errors.Is(err, errNode) {
		c.Close()
		return nil, errNode
	}
	st.clients[text] = c
	return c, nil
}

// Begin starts the reading of a configuration: the limits that it asks for are those that
// Adopt keeps.
func (st *Store) Begin() {
	st.mu.Lock()
	defer st.mu.Unlock()
	clear(st.asked)
}

// Adopt puts the configuration that was read in force: limits that it did not ask for are
// closed.
func (st *Store) Adopt() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closeExcept(st.asked)
	st.inForce = maps.Clone(st.asked)
}

// Refuse gives up the configuration that was read: limits that were not in force before
// are closed.
func (st *Store) Refuse() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closeExcept(st.inForce)
}

func (st *Store) closeExcept(kept map[string]bool) {
	for all, l := range st.limits {
		if !kept[all] {
			delete(st.limits, all)
			go l.Close() // tells the other processes, which may take a moment
		}
	}
}

// Warnings are what the limits say about their store.
func (st *Store) Warnings() (all []string) {
	st.mu.Lock()
	limits := maps.Clone(st.limits)
	st.mu.Unlock()
	for _, l := range limits {
		if warning, _ := l.Health(); warning != "" {
			all = append(all, warning)
		}
	}
	return all
}

// Close gives back what the limits hold, and the connections.
func (st *Store) Close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, l := range st.limits {
		l.Close()
	}
	for _, c := range st.clients {
		c.Close()
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
