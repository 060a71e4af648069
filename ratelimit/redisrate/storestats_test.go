package redisrate

import (
	"testing"

	"github.com/headgate-go/headgate/ratelimit"
)

func TestStatsShowTheStore(t *testing.T) {
	l := &Limiter{bad: errLate, conf: &config{name: "fleet"}}
	s := l.StoreStats()
	if s.Name != "fleet" || s.State != "shared" || len(s.Calls) != WhyCount || s.Calls[0].Result != "ok" {
		t.Errorf("store stats %+v", s)
	}
	for _, c := range s.Calls {
		if c.Result == "" {
			t.Error("a result has no name")
		}
	}
	var _ ratelimit.Stored = l
}
