package pacer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/ratelimit"
)

// fragile panics when it is asked where no call stands behind it.
type fragile struct {
	ratelimit.Limiter
	asked int
}

func (l *fragile) Take(ctx context.Context, now time.Time, key ratelimit.Key, cost int, wait time.Duration) ratelimit.Decision {
	if l.asked++; l.asked == 3 {
		panic("the limiter's own")
	}
	return l.Limiter.Take(ctx, now, key, cost, wait)
}

// A limiter that panics while calls stand in line refuses them, and the process goes on.
func TestALimiterThatPanicsRefusesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := pacer.New(pacer.Options{Rate: &fragile{Limiter: ratelimit.PerKey(1, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		o := p.Operation(ratelimit.Key{ID: "a"})
		if _, err := o.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = o.Acquire(t.Context())
		if refusal := (*pacer.Refusal)(nil); !errors.As(err, &refusal) || refusal.Reason != pacer.LimiterUnavailable {
			t.Errorf("got %v, want a refusal for a limiter that is unavailable", err)
		}
		if _, err := o.Acquire(t.Context()); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
