package redisrate

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// Below rate × (2 round trips + 50 ms) of burst, what Health says can be used can be.
func TestHealthSaysWhatAFarStoreCosts(t *testing.T) {
	for _, c := range []struct {
		procs, burst int
		trip         time.Duration
		least        float64 // 0: all
	}{
		{1, 600, 100 * time.Millisecond, 0}, {1, 60, 100 * time.Millisecond, 240}, {4, 60, 25 * time.Millisecond, 600},
		{8, 15, 100 * time.Millisecond, 60}, {1, 100, 200 * time.Millisecond, 222.2},
	} {
		t.Run(fmt.Sprintf("%d processes, burst %d, %v", c.procs, c.burst, c.trip), func(t *testing.T) {
			atDistance(t, c.procs, 1000, c.burst, c.trip, 0, nil, func(t *testing.T, w *far) {
				const length = 10 * time.Second
				w.load("a", 2000/float64(c.procs), length)
				text, ok := w.procs[0].Health()
				want := ""
				if c.least > 0 {
					want = fmt.Sprintf("of 1000 a second at least %v can be used, all with a burst of %v", c.least, 1000*(2*c.trip.Seconds()+0.05))
				}
				if !ok || !strings.HasSuffix(text, want) || want == "" && text != "" {
					t.Errorf("health: %q, %v; want %q", text, ok, want)
				}
				if used := float64(len(w.admitted)) / length.Seconds(); used < c.least {
					t.Errorf("%.0f a second admitted: %s", used, text)
				}
			})
		})
	}
}
