package store

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A limiter's calls are short and must never run twice: a client made for caches
// and queues retries writes, ignores deadlines in flight and waits seconds for a
// connection. So the limiter opens its own from the same options.
const (
	dialTimeout = 250 * time.Millisecond
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
		o.ContextTimeoutEnabled = true
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, 2*budget, 2*budget, budget
		o.PoolSize, o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = poolSize, 0, 0, 0
		o.MaxConcurrentDials, o.ConnMaxIdleTime = poolSize, idleTimeout
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		return redis.NewClient(&o), true
	case *redis.ClusterClient:
		o := *rdb.Options()
		o.MaxRetries, o.DialerRetries = -1, 1
		o.ContextTimeoutEnabled = true
		o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = dialTimeout, 2*budget, 2*budget, budget
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
