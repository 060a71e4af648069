package pacer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

var push = ratelimit.Key{Space: "push.test", ID: "send"}

func newPacer(t *testing.T, o pacer.Options) *pacer.Pacer {
	t.Helper()
	p, err := pacer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func throttled(hint time.Duration) verdict.Verdict {
	return verdict.Verdict{Kind: verdict.Throttled, Hint: hint, Hinted: hint > 0}
}

func TestALineIsServedByLevelThenByArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1, 1)})
		if _, err := p.Acquire(t.Context(), push); err != nil {
			t.Fatal(err)
		}
		var order []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i, l := range []priority.Level{priority.Batch, priority.Normal, priority.Critical, priority.Normal, priority.High} {
			wg.Go(func() {
				if _, err := p.Acquire(priority.NewContext(t.Context(), l), push); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, fmt.Sprintf("%v%d", l, i))
				mu.Unlock()
			})
			synctest.Wait()
		}
		wg.Wait()
		if want := []string{"critical2", "high4", "normal1", "normal3", "batch0"}; !slices.Equal(order, want) {
			t.Errorf("served %v, want %v", order, want)
		}
	})
}

func TestAWaitThatDoesNotFitIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1, 1), MaxWait: 5 * time.Second})
		refused := func(ctx context.Context, why pacer.Reason) {
			t.Helper()
			start := time.Now()
			_, err := p.Acquire(ctx, push)
			var r *pacer.Refusal
			if !errors.As(err, &r) || r.Reason != why || !errors.Is(err, verdict.ErrLocal) || r.Wait <= 0 {
				t.Errorf("error %v, want a refusal for %v", err, why)
			}
			if time.Since(start) != 0 {
				t.Errorf("refused after %v", time.Since(start))
			}
		}
		if _, err := p.Acquire(t.Context(), push); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		refused(short, pacer.WaitTooLong)

		var wg sync.WaitGroup
		for range 4 { // at 1, 2, 3 and 4 s; the next would be at 5
			wg.Go(func() {
				if _, err := p.Acquire(t.Context(), push); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		refused(t.Context(), pacer.WaitTooLong)
		wg.Wait()
	})
}

func TestAPauseReachesThoseInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(10, 1)})
		if _, err := p.Acquire(t.Context(), push); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var patient, hopeless atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := p.Acquire(t.Context(), push); err != nil {
					t.Error(err)
				}
				patient.Store(int64(time.Since(start)))
			})
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := p.Acquire(ctx, push)
			var r *pacer.Refusal
			if !errors.As(err, &r) || r.Reason != pacer.Paused {
				t.Errorf("error %v", err)
			}
			hopeless.Store(int64(time.Since(start)))
		})
		time.Sleep(50 * time.Millisecond)
		p.Report(t.Context(), push, throttled(10*time.Second))
		wg.Wait()
		if got := time.Duration(patient.Load()); got < 10*time.Second || got > 12*time.Second {
			t.Errorf("the patient were served after %v", got)
		}
		if got := time.Duration(hopeless.Load()); got != 50*time.Millisecond {
			t.Errorf("the hopeless learned it after %v, want at once", got)
		}
	})
}

func TestACancelledWaitLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(1, 1)})
		if _, err := p.Acquire(t.Context(), push); err != nil {
			t.Fatal(err)
		}
		cause := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := p.Acquire(ctx, push); !errors.Is(err, cause) {
					t.Errorf("error %v", err)
				}
			})
		}
		synctest.Wait()
		cancel(cause)
		wg.Wait()
		if n := p.Stats().Operations[0].Waiting; n != 0 {
			t.Errorf("%d in line", n)
		}
		start := time.Now()
		if _, err := p.Acquire(t.Context(), push); err != nil || time.Since(start) != time.Second {
			t.Errorf("the next one waited %v, %v: want the token that was not used", time.Since(start), err)
		}
	})
}

func TestNoTokenIsSpentWhileThereIsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(0.001, 2), InFlight: shed.Fixed(1), MaxWait: 10 * time.Second})
		first, err := p.Acquire(t.Context(), push)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Acquire(ctx, push); err == nil {
			t.Fatal("two slots of one")
		}
		first.Release(verdict.OK)
		start := time.Now()
		second, err := p.Acquire(t.Context(), push)
		if err != nil || time.Since(start) != 0 {
			t.Fatalf("%v after %v: the token of the call that found no slot is gone", err, time.Since(start))
		}
		second.Release(verdict.OK)
		if _, err := p.Acquire(t.Context(), push); err == nil {
			t.Error("three tokens of two")
		}
		if o := p.Stats().Operations[0]; o.InFlight != 0 || o.Waiting != 0 || o.Attempts != 2 {
			t.Errorf("%+v", o)
		}
	})
}

func TestTwentyConcurrentThrottlesCutOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{Rate: ratelimit.PerKey(100, 100)})
		for range 20 {
			if _, err := p.Acquire(t.Context(), push); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			p.Report(t.Context(), push, throttled(0))
		}
		s := p.Stats().Operations[0]
		if s.Cuts != 1 || s.Rate < 69.9 || s.Rate > 70.1 || s.Multiplier != 0.7 {
			t.Errorf("%d cuts, rate %v, multiplier %v; want one cut to 70", s.Cuts, s.Rate, s.Multiplier)
		}
		time.Sleep(6 * time.Second)
		if s = p.Stats().Operations[0]; s.Rate != 100 || s.Multiplier != 1 {
			t.Errorf("after 6 s: rate %v, multiplier %v; want all of it back", s.Rate, s.Multiplier)
		}
	})
}

func TestAnUnknownQuotaIsLearnedFromTheFirstThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{})
		for range 300 { // 100 per second
			if _, err := p.Acquire(t.Context(), push); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if s := p.Stats().Operations[0]; s.Rate != rate.Inf {
			t.Errorf("rate %v before any throttle", s.Rate)
		}
		p.Report(t.Context(), push, throttled(0))
		if s := p.Stats().Operations[0]; s.Rate < 65 || s.Rate > 75 {
			t.Errorf("rate %v after it, want 0.7 of the 100 measured", s.Rate)
		}
		time.Sleep(time.Minute)
		if s := p.Stats().Operations[0]; s.Rate != rate.Inf {
			t.Errorf("rate %v a minute later", s.Rate)
		}
	})
}

func TestAServiceWideRefusalReachesEveryOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{})
		read, write := ratelimit.Key{Space: "a", ID: "read"}, ratelimit.Key{Space: "a", ID: "write"}
		other := ratelimit.Key{Space: "b", ID: "read"}
		waited := func(k ratelimit.Key) time.Duration {
			start := time.Now()
			if _, err := p.Acquire(t.Context(), k); err != nil {
				t.Error(err)
			}
			return time.Since(start)
		}
		waited(read)
		v := verdict.Verdict{Kind: verdict.Overloaded, ServiceWide: true, Hint: 2 * time.Second, Hinted: true}
		p.Report(t.Context(), read, v)
		if d := waited(other); d != 0 {
			t.Errorf("another service waited %v", d)
		}
		if d := waited(write); d < 2*time.Second || d > 3*time.Second {
			t.Errorf("an operation first called during the pause waited %v", d)
		}
	})
}

func TestOperationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, pacer.Options{MaxOperations: 10})
		for i := range 1000 {
			grant, err := p.Acquire(t.Context(), ratelimit.Key{Space: fmt.Sprint("host", i)})
			if err != nil {
				t.Fatal(err)
			}
			grant.Release(verdict.OK)
		}
		if n := len(p.Stats().Operations); n > 11 {
			t.Errorf("%d operations tracked", n)
		}
		time.Sleep(2 * time.Minute)
		for i := range 5 {
			if _, err := p.Acquire(t.Context(), ratelimit.Key{Space: fmt.Sprint("late", i)}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(p.Stats().Operations); n != 5 {
			t.Errorf("%d operations tracked after the others rested, want the 5 new ones", n)
		}
	})
}

// bubble runs f on fake time in a subtest.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
