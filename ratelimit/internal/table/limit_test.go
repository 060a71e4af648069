package table

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func TestLimitIsTheFractionThatWasMeant(t *testing.T) {
	for _, c := range []struct {
		limit       rate.Limit
		token, gain uint64
	}{
		{1, 1e9, 1},
		{50, 2e7, 1},
		{1e9, 1, 1},
		{3e8, 10, 3},
		{0.3, 1e10, 3},
		{1e15, 1, 1e6},
		{7.0 / 60, 6e10, 7},
		{3.0 / 86400, 28_800e9, 1},
		{rate.Every(8 * time.Hour), 28_800e9, 1},
		{rate.Every(7 * time.Nanosecond), 7, 1},
		{rate.Every(time.Hour + time.Nanosecond), 3_600_000_000_001, 1},
		{1.0 / 86400, 86_400e9, 1},
	} {
		if token, gain := fraction(float64(c.limit)); token != c.token || gain != c.gain {
			t.Errorf("%v per second: %d in %d ns, want %d in %d", c.limit, gain, token, c.gain, c.token)
		}
	}
}
