package pacer_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
)

// adapting is a limiter that adapts by itself, as one shared through a store does.
type adapting struct {
	mu    sync.Mutex
	got   []float64
	pause time.Duration
}

func (*adapting) Take(context.Context, time.Time, ratelimit.Key, int, time.Duration) ratelimit.Decision {
	return ratelimit.Decision{OK: true}
}
func (*adapting) Policy(ratelimit.Key) ratelimit.Policy {
	return ratelimit.Policy{Rate: 50, Burst: 5}
}
func (*adapting) Validate() error { return nil }

func (a *adapting) Throttled(_ time.Time, _ ratelimit.Key, pause time.Duration, factor float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got, a.pause = append(a.got, factor), pause
}

func TestALimiterThatAdaptsItselfGetsTheThrottles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &adapting{}
		p := newPacer(t, pacer.Options{Rate: limiter})
		p.Report(t.Context(), push, throttled(3*time.Second))
		p.Report(t.Context(), push, verdict.Verdict{Kind: verdict.Overloaded, Hinted: true})
		p.Report(t.Context(), push, verdict.Verdict{Kind: verdict.QuotaExhausted}) // a pause, and no cut
		if !slices.Equal(limiter.got, []float64{0.7, 0.5}) {
			t.Errorf("got %v", limiter.got)
		}
		if o := p.Stats().Operations[0]; o.Cuts != 0 || o.Rate != 50 || o.PauseLeft < time.Minute {
			t.Errorf("cut here as well, or no pause: %+v", o)
		}
	})
}
