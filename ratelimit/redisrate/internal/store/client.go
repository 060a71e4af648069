package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A limiter's calls are short and must never run twice: a client made for caches
// and queues retries writes, ignores deadlines in flight and waits seconds for a
// connection. So the limiter opens its own from the same options.
// A connection costs up to five round trips, so making one is not part of a call: it has a
// time of its own, and an answer has the call's.
const (
	dialTimeout = time.Second
	idleTimeout = time.Minute
	poolSize    = 32 // connections per node, opened as they are needed
)

// own returns a client with rdb's address and credentials, and settings that are
// safe here. Clients of other types are used as they are; then closing is the
// caller's business.
func own(rdb redis.UniversalClient, budget time.Duration) (c redis.UniversalClient, mine bool) {
	switch rdb := rdb.(type) {
	case *redis.Client: // alone, or found through Sentinel by its dialer
		o := *rdb.Options()
		o.MaxRetries, o.DialerRetries = -1, 1
		o.ContextTimeoutEnabled, o.DisableIdentity = true, true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, budget, budget, budget
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = poolSize, 0, 0, 0
		o.MaxConcurrentDials, o.ConnMaxIdleTime = poolSize, idleTimeout
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return redis.NewClient(&o), true
	case *redis.ClusterClient:
		o := *rdb.Options()
		o.MaxRetries, o.DialerRetries = -1, 1
		o.ContextTimeoutEnabled, o.DisableIdentity = true, true
		o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, budget, budget, budget
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = poolSize, 0, 0, 0
		o.MaxConcurrentDials, o.ConnMaxIdleTime = poolSize, idleTimeout
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return redis.NewClusterClient(&o), true
	}
	return rdb, false
}

// ErrNilClient says that there is no client, also behind a typed nil.
var ErrNilClient = errors.New("redisrate: client is nil")

// Present says whether there is a client, also behind a typed nil.
func Present(rdb redis.UniversalClient) error {
	if rdb == nil {
		return ErrNilClient
	}
	if v := reflect.ValueOf(rdb); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("%w (a nil %T)", ErrNilClient, rdb)
	}
	return nil
}

// patient returns a context for a call that may have to make a connection first. It ends
// with ctx, but not at its deadline: that is kept by the time each answer may take.
func (s *Redis) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if !s.mine {
		return ctx, func() {}
	}
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTimeout+2*s.budget)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return long, func() { stop(); cancel() }
}

// warm is how many connections are made before they are needed.
const warm = 4

// Warm makes connections, so that the first calls find some. It returns when they are
// made, or cannot be.
func (s *Redis) Warm(ctx context.Context) {
	ctx, cancel := s.patient(ctx)
	defer cancel()
	if c, ok := s.rdb.(*redis.ClusterClient); ok {
		_ = c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return c.Time(ctx).Err() })
		return
	}
	var all sync.WaitGroup
	for range warm {
		all.Go(func() { s.rdb.Time(ctx) })
	}
	all.Wait()
}
