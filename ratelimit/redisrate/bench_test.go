package redisrate

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
)

// BenchmarkSlot is the hot path: a decision from a slot that is held.
func BenchmarkSlot(b *testing.B) {
	c := Options{}.config()
	c.Limit, c.log = account.Limit{Rate: 1e6, Burst: 1e6}, nil
	c.Law = account.Law{Tau: time.Hour} // nothing is fetched, perishes or is given back meanwhile
	c.setPlans(ratelimit.Plan{Rate: 1, Burst: 1}, nil)
	l := newLimiter(&c, newSick())
	defer l.Close()
	key, ctx := ratelimit.Key{Space: "key", ID: "a"}, context.Background()
	l.Take(ctx, time.Now(), key, 1, 0)
	e := l.table.find(key)
	e.mu.Lock()
	stock(e, b.N+1<<30)
	e.mu.Unlock()
	b.ReportAllocs()
	refused := 0
	for b.Loop() {
		if !l.Take(ctx, time.Now(), key, 1, 0).OK {
			refused++
		}
	}
	if refused > 0 {
		b.Errorf("%d refused: not the path to measure", refused)
	}
}
