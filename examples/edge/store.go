package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/policy"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate"
)

// store makes the limits that are shared through Redis, and closes those that a
// reload has left behind. What a caller has left is in Redis, so a limit made anew
// goes on where the old one stood.
type store struct {
	log *slog.Logger

	mu      sync.Mutex
	clients map[string]*redis.Client
	limits  map[string]*redisrate.Limiter // by everything that is said of them
	asked   map[string]bool               // since the last settle
}

func newStore(log *slog.Logger) *store {
	redis.SetLogger(silent{}) // of every failed dial; the limits tell when the store goes and comes
	return &store{
		log: log, clients: map[string]*redis.Client{},
		limits: map[string]*redisrate.Limiter{}, asked: map[string]bool{},
	}
}

// limit returns the limiter for s. The same numbers get the same limiter.
func (st *store) limit(s policy.SharedLimit) (ratelimit.Limiter, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	all := fmt.Sprintf("%+v", s)
	st.asked[all] = true
	if l := st.limits[all]; l != nil {
		return l, nil
	}
	client, err := st.client(s.Redis)
	if err != nil {
		return nil, err
	}
	options := []redisrate.Option{redisrate.Name(s.Name), redisrate.Logger(st.log)}
	if s.Keys != 0 {
		options = append(options, redisrate.MaxKeys(s.Keys))
	}
	l := redisrate.Tiers(client, s.Plan, s.Plans, options...)
	if err := l.Validate(); err != nil {
		return nil, err
	}
	st.limits[all] = l
	return l, nil
}

func (st *store) client(address string) (*redis.Client, error) {
	if c := st.clients[address]; c != nil {
		return c, nil
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	st.clients[address] = redis.NewClient(options)
	return st.clients[address], nil
}

// settle closes the limits that nobody asked for since the last time.
func (st *store) settle() {
	st.mu.Lock()
	defer st.mu.Unlock()
	for all, l := range st.limits {
		if !st.asked[all] {
			delete(st.limits, all)
			go l.Close() // tells the other processes, which may take a moment
		}
	}
	clear(st.asked)
}

// warnings are what the limits say about their store.
func (st *store) warnings() (all []string) {
	st.mu.Lock()
	limits := maps.Clone(st.limits)
	st.mu.Unlock()
	for _, l := range limits {
		if warning, ok := l.Health(); !ok {
			all = append(all, warning)
		}
	}
	return all
}

func (st *store) close() {
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
