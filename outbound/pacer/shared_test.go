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

// A wrapper changes neither what a limiter is told nor who adapts: a limit in shadow is
// told and enforces nothing, and a scope around a plain one adapts no more than that.
//
// Case LI-09: tried on the product
func TestWrappedLimitersAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		wrap func(ratelimit.Limiter) ratelimit.Limiter
		told bool
		cuts uint64
	}{
		"a scope":         {func(l ratelimit.Limiter) ratelimit.Limiter { return ratelimit.Scoped("s", l) }, true, 0},
		"one of several":  {func(l ratelimit.Limiter) ratelimit.Limiter { return ratelimit.All(ratelimit.PerKey(50, 5), l) }, true, 0},
		"shadow":          {ratelimit.Shadow, true, 1},
		"a scope of none": {func(ratelimit.Limiter) ratelimit.Limiter { return ratelimit.Scoped("s", ratelimit.PerKey(50, 5)) }, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter := &adapting{}
			p := newPacer(t, pacer.Options{Rate: tc.wrap(limiter)})
			p.Report(t.Context(), push, throttled(3*time.Second))
			if told := len(limiter.got) == 1; told != tc.told {
				t.Errorf("%s: told %v", name, limiter.got)
			}
			if o := p.Stats().Operations[0]; o.Cuts != tc.cuts {
				t.Errorf("%s: %d cuts here, want %d", name, o.Cuts, tc.cuts)
			}
		})
	}
}
