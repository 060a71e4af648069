package redisrate

import (
	"testing"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

func TestStatsShowTheStore(t *testing.T) {
	l := &Limiter{bad: store.ErrNilClient, conf: &config{name: "fleet"}}
	s := l.StoreStats()
	if s.Name != "fleet" || s.State != "shared" || len(s.Calls) != account.WhyCount || s.Calls[0].Result != "ok" {
		t.Errorf("store stats %+v", s)
	}
	for _, c := range s.Calls {
		if c.Result == "" {
			t.Error("a result has no name")
		}
	}
	var _ ratelimit.Stored = l
}
