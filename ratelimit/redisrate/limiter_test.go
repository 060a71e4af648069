package redisrate

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit"
)

var quiet = Logger(nil)

func perKey(t testing.TB, rdb redis.UniversalClient, r float64, burst int, o ...Option) *Limiter {
	t.Helper()
	l := PerKey(rdb, rateOf(r), burst, append([]Option{quiet}, o...)...)
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// admit asks n times and counts.
func admit(l ratelimit.Limiter, key string, n int) (ok int) {
	for range n {
		if l.Take(context.Background(), time.Now(), ratelimit.Key{ID: key}, 1, 0).OK {
			ok++
		}
	}
	return ok
}

func TestBurstThenRefusalsFromTheCache(t *testing.T) {
	s := startServer(t)
	l := perKey(t, s.client(t), 1.0/3600, 10)
	if got := admit(l, "a", 30); got != 10 {
		t.Errorf("admitted %d of burst 10", got)
	}
	st := l.Snapshot()
	if st.Calls[WhyNothing] != 10 {
		t.Errorf("%d calls, want one for each admission: %+v", st.Calls[0], st)
	}
	d := l.Take(context.Background(), time.Now(), ratelimit.Key{ID: "a"}, 1, 0)
	if d.OK || d.Source != ratelimit.SourceDenialCache || d.Wait < 3590*time.Second || d.Wait > 3600*time.Second {
		t.Errorf("%+v", d)
	}
}
