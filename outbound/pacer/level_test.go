package pacer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// A gate sheds the lowest levels first. What it refuses to a batch job must not keep
// the checkout away, however long the batch job is to wait.
func TestAGatesRefusalSparesHigherLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1000, 10)})
		at := func(l priority.Level) context.Context { return priority.NewContext(t.Context(), l) }
		shedding := verdict.Verdict{
			Kind: verdict.Overloaded, ServiceWide: true, Reason: shed.QueueFull,
			Hint: 20 * time.Second, Hinted: true,
		}
		p.Report(at(priority.Normal), push, shedding)
		start := time.Now()
		var wg sync.WaitGroup
		waited := map[priority.Level]time.Duration{}
		var mu sync.Mutex
		for _, l := range priority.All() { // the lowest first, so that its wait is armed when the others come
			wg.Go(func() {
				if _, err := p.Acquire(at(l), push); err != nil {
					t.Error(l, err)
				}
				mu.Lock()
				waited[l] = time.Since(start)
				mu.Unlock()
			})
			synctest.Wait()
		}
		wg.Wait()
		for l, d := range waited {
			if spared := l > priority.Normal; spared && d > 100*time.Millisecond || !spared && d < 20*time.Second {
				t.Errorf("%v waited %v", l, d)
			}
		}
	})
}

// A throttle of the quota spares no level.
func TestAThrottleReachesEveryLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{})
		p.Report(priority.NewContext(t.Context(), priority.Batch), push, throttled(2*time.Second))
		start := time.Now()
		if _, err := p.Acquire(priority.NewContext(t.Context(), priority.Critical), push); err != nil || time.Since(start) < 2*time.Second {
			t.Errorf("critical waited %v, %v", time.Since(start), err)
		}
	})
}

func TestABare503IsAnAccidentUntilManyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1000, 1000)})
		overloaded := verdict.Verdict{Kind: verdict.Overloaded}
		for i := range 5000 { // one in a hundred
			v := verdict.Verdict{}
			if i%100 == 99 {
				v = overloaded
			}
			p.Report(t.Context(), push, v)
			time.Sleep(time.Millisecond)
		}
		if o := p.Stats().Operations[0]; o.Cuts != 0 {
			t.Errorf("%d cuts for one answer in a hundred", o.Cuts)
		}
		for i := range 200 { // every second one
			v := verdict.Verdict{}
			if i%2 == 0 {
				v = overloaded
			}
			p.Report(t.Context(), push, v)
			time.Sleep(time.Millisecond)
		}
		if o := p.Stats().Operations[0]; o.Cuts != 1 || o.Multiplier < 0.5 || o.Multiplier > 0.51 {
			t.Errorf("%d cuts, ×%v, for every second answer", o.Cuts, o.Multiplier)
		}
	})
}
