package redisrate

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
)

// Case ST-01: tried on the product, with a real server behind a slow link
func TestARealStoreAtADistance(t *testing.T) {
	s := redistest.Start(t)
	for _, trip := range []time.Duration{25 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(fmt.Sprint(trip), func(t *testing.T) {
			t.Parallel()
			c := redis.NewClient(&redis.Options{Addr: redistest.SlowLink(t, s.Addr, trip)})
			t.Cleanup(func() { c.Close() })
			l := PerKey(c, 4, 20, with(name(fmt.Sprint(trip)), quiet))
			defer l.Close()
			passed, begin := 0, time.Now()
			for time.Since(begin) < 5*time.Second {
				if take(l, "a", 1, 0).OK {
					passed++
				}
				time.Sleep(20 * time.Millisecond)
			}
			st := l.Snapshot()
			t.Logf("%d admitted, round trip %v, %d changes", passed, st.RoundTrip, st.Changes)
			if passed < 37-int(8*trip.Seconds()) || passed > 41 || st.Changes > 0 || st.State != "shared" {
				t.Errorf("%d admitted in 5 s of 4/s and a burst of 20: %+v", passed, st)
			}
		})
	}
}
