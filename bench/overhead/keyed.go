package overhead

import (
	"context"
	"net/http"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/didip/tollbooth/v7/limiter"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
)

const stacked = "httprate + chi Throttle"

// keyed are the libraries that limit a rate per key, each as its README has it,
// with the key from the same header.
func keyed() []*subject {
	rates, x := []string{admitted, refused429}, []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
	return []*subject{
		{name: "httprate", does: "a sliding window per key", benches: rates, headers: x, build: newHTTPRate},
		{name: stacked, does: "both middlewares", benches: rates, headers: x, build: newStacked},
		{name: "tollbooth", does: "a token bucket per key", benches: rates,
			headers: []string{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset"}, build: newTollbooth},
		{name: "ulule/limiter", does: "a fixed window per key", benches: rates, headers: x, build: newUlule},
		{name: "throttled", does: "GCRA per key", benches: rates, headers: x, build: newThrottled},
		{name: "sethvargo/go-limiter", does: "a fixed window per key", benches: rates, headers: x, build: newSethvargo},
	}
}

func headerKey(r *http.Request) (string, error) { return r.Header.Get(keyHeader), nil }

func newHTTPRate(t terms) (*instance, error) {
	return &instance{ask: over(httprate.LimitBy(t.burst, t.window, headerKey)(served))}, nil
}

func newStacked(t terms) (*instance, error) {
	limit := httprate.LimitBy(t.burst, t.window, headerKey)
	return &instance{ask: over(limit(middleware.Throttle(t.slots)(served)))}, nil
}

func newTollbooth(t terms) (*instance, error) {
	l := tollbooth.NewLimiter(t.perSecond, &limiter.ExpirableOptions{DefaultExpirationTTL: time.Hour})
	l.SetBurst(t.burst).SetIPLookups([]string{"RemoteAddr"}).SetHeader(keyHeader, nil).SetIgnoreURL(true)
	return &instance{ask: over(tollbooth.LimitHandler(l, served))}, nil
}

func newUlule(t terms) (*instance, error) {
	l := ulule.New(memory.NewStore(), ulule.Rate{Period: t.window, Limit: int64(t.burst)})
	m := stdlib.NewMiddleware(l, stdlib.WithKeyGetter(func(r *http.Request) string { return r.Header.Get(keyHeader) }))
	return &instance{ask: over(m.Handler(served))}, nil
}

func newThrottled(t terms) (*instance, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerHour(1), MaxBurst: t.burst - 1}
	if t.burst > 1 { // its arithmetic ends at 292 years
		quota.MaxRate = throttled.PerSec(1000)
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	h := throttled.HTTPRateLimiterCtx{
		RateLimiter: l,
		VaryBy:      &throttled.VaryBy{Custom: func(r *http.Request) string { return r.Header.Get(keyHeader) }},
	}
	return &instance{ask: over(h.RateLimit(served))}, nil
}

func newSethvargo(t terms) (*instance, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(t.burst), Interval: t.window})
	if err != nil {
		return nil, err
	}
	m, err := httplimit.NewMiddleware(store, headerKey)
	if err != nil {
		return nil, err
	}
	return &instance{ask: over(m.Handle(served)), close: func() { _ = store.Close(context.Background()) }}, nil
}
