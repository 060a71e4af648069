package ratelimit_test

import (
	"testing"

	"github.com/headgate-go/headgate/ratelimit"
)

// stored is a limiter that knows where it stands with a store.
type stored struct{ ratelimit.Limiter }

func (stored) StoreStats() ratelimit.StoreStats {
	return ratelimit.StoreStats{Name: "fleet", Keys: 3, Degraded: true}
}

func TestStoresShowThroughWrappers(t *testing.T) {
	l := ratelimit.Shadow(ratelimit.All(ratelimit.PerKey(1, 1), stored{ratelimit.Unlimited}))
	s := ratelimit.StatsOf(l)
	if len(s.Stores) != 1 || s.Stores[0].Name != "fleet" || s.Keys != 3 {
		t.Errorf("stats = %+v, want the store called fleet and 3 keys", s)
	}
}
