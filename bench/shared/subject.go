package shared

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate"
)

// instance is one process' view of a ceiling: does a request pass? An error is
// what a caller of the library would have to answer with a 500.
type instance interface {
	allow(ctx context.Context) (bool, error)
	close()
}

// subject makes instances that share one ceiling called name.
type subject struct {
	name string
	make func(name string, rdb *redis.Client, r, burst int) (instance, error)
}

func subjects() []subject {
	return []subject{
		{"headgate, slots leased", headgate(redisrate.Options{})},
		{"headgate, a call each", headgate(redisrate.Options{NoLeases: true})},
		{"redis_rate", newRedisRate},
		{"throttled", newThrottled},
	}
}

type leased struct {
	*redisrate.Limiter
	rdb *redis.Client
}

func headgate(options redisrate.Options) func(string, *redis.Client, int, int) (instance, error) {
	return func(name string, rdb *redis.Client, r, burst int) (instance, error) {
		options.Name, options.Logger = name, slog.New(slog.DiscardHandler)
		l := redisrate.PerKey(rdb, rate.Limit(r), burst, options)
		return leased{l, rdb}, l.Validate()
	}
}

func (l leased) allow(ctx context.Context) (bool, error) {
	return l.Take(ctx, time.Now(), ratelimit.Key{ID: "all"}, 1, 0).OK, nil
}

func (l leased) close() {
	_ = l.Close()
	_ = l.rdb.Close()
}

type redisRate struct {
	l    *redis_rate.Limiter
	rdb  *redis.Client
	name string
	max  redis_rate.Limit
}

func newRedisRate(name string, rdb *redis.Client, r, burst int) (instance, error) {
	return redisRate{redis_rate.NewLimiter(rdb), rdb, name, redis_rate.Limit{Rate: r, Burst: burst, Period: time.Second}}, nil
}

func (r redisRate) allow(ctx context.Context) (bool, error) {
	res, err := r.l.Allow(ctx, r.name, r.max)
	if err != nil {
		return false, err
	}
	return res.Allowed > 0, nil
}

func (r redisRate) close() { _ = r.rdb.Close() }

type throttledGCRA struct {
	l    *throttled.GCRARateLimiterCtx
	rdb  *redis.Client
	name string
}

func newThrottled(name string, rdb *redis.Client, r, burst int) (instance, error) {
	store, err := goredisstore.NewCtx(rdb, "throttled:")
	if err != nil {
		return nil, fmt.Errorf("throttled's store: %w", err)
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(r), MaxBurst: burst - 1})
	if err != nil {
		return nil, fmt.Errorf("throttled: %w", err)
	}
	return throttledGCRA{l, rdb, name}, nil
}

func (t throttledGCRA) allow(ctx context.Context) (bool, error) {
	limited, _, err := t.l.RateLimitCtx(ctx, t.name, 1)
	return err == nil && !limited, err
}

func (t throttledGCRA) close() { _ = t.rdb.Close() }
