package pacer

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestLawReturnsAdditively(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	var p law
	for _, step := range []struct {
		at     float64
		factor float64 // 0: only look
		hint   time.Duration
		cut    bool
		want   float64 // in force afterwards
	}{
		{at: 0, want: 1},
		{at: 0, factor: 0.7, cut: true, want: 0.7},
		{at: 0.5, factor: 0.7, cut: false, want: 0.725}, // an echo within the epoch
		{at: 2, want: 0.8},
		{at: 2, factor: 0.7, hint: 4 * time.Second, cut: true, want: 0.56},
		{at: 5.9, factor: 0.7, cut: false, want: 0.56},
		{at: 6, want: 0.56},
		{at: 10, want: 0.56 + 4*0.05*0.8}, // carefully, up to where the server objected
		{at: 13, want: 0.8 + 0.05*1},      // reached at 12
		{at: 16.5, want: 1},
		{at: 17, factor: 0.5, cut: true, want: 0.5},
		{at: 17 + 3600, want: 1},
	} {
		if step.factor > 0 {
			if cut := p.cut(at(step.at), step.factor, knownTop, step.hint); cut != step.cut {
				t.Fatalf("at %v s: cut %v, want %v", step.at, cut, step.cut)
			}
		}
		if got := p.inForce(at(step.at)); math.Abs(got-step.want) > 1e-9 {
			t.Errorf("at %v s: %v in force, want %v", step.at, got, step.want)
		}
	}
}

func TestLawStaysWithinItsBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Unix(1000, 0)
	var p law
	last := time.Time{}
	for range 100_000 {
		now = now.Add(time.Duration(random.IntN(3000)-100) * time.Millisecond)
		if random.IntN(3) == 0 {
			hint := time.Duration(random.IntN(5000)) * time.Millisecond
			before := p.inForce(now)
			if p.cut(now, cutOverload, knownTop, hint) {
				if now.Before(last) {
					t.Fatal("cut twice in an epoch")
				}
				last = now.Add(max(time.Second, hint))
				if after := p.inForce(now); after > before {
					t.Fatalf("a cut raised %v to %v", before, after)
				}
			}
		}
		if m := p.inForce(now); math.IsNaN(m) || m < floorLaw || m > 1 {
			t.Fatalf("%v in force", m)
		}
	}
}

// awsPace is the client-side law of the AWS SDKs' adaptive mode, for comparison: a
// cut per answer, a cubic curve back, both bounded by twice the measured rate.
type awsPace struct {
	rate, wmax, k float64
	at            time.Time
	enabled       bool
}

func (a *awsPace) throttled(now time.Time, measured float64) {
	r := measured
	if a.enabled {
		r = min(measured, a.rate)
	}
	a.enabled, a.wmax, a.at = true, r, now
	a.k = math.Cbrt(r * 0.3 / 0.4)
	a.set(0.7*r, measured)
}

func (a *awsPace) answered(now time.Time, measured float64) {
	if a.enabled {
		a.set(0.4*math.Pow(now.Sub(a.at).Seconds()-a.k, 3)+a.wmax, measured)
	}
}

func (a *awsPace) set(r, measured float64) { a.rate = max(0.5, min(r, 2*measured)) }

// recovery returns how long it takes from twenty concurrent throttles at 100/s until
// 95/s may be sent again, when everything that may be sent is.
func recovery(start time.Time, rateAt func(now time.Time) float64) time.Duration {
	for now := start; ; now = now.Add(10 * time.Millisecond) {
		if r := rateAt(now); r >= 95 || now.Sub(start) > time.Hour {
			return now.Sub(start)
		}
	}
}

func TestTwentyThrottlesAreForgottenSoonerThanByAWS(t *testing.T) {
	start := time.Unix(1000, 0)
	var ours law
	theirs, m := awsPace{}, meter{}
	for i := range 200 { // both have been sending 100/s
		m.add(start.Add(time.Duration(i-200) * 10 * time.Millisecond))
	}
	for range 20 {
		ours.cut(start, cutThrottle, knownTop, 0)
		theirs.throttled(start, m.perSecond(start))
	}
	oursAfter, theirsAfter := 100*ours.inForce(start), theirs.rate

	oursTook := recovery(start, func(now time.Time) float64 { return 100 * ours.inForce(now) })
	credit := 0.0
	theirsTook := recovery(start, func(now time.Time) float64 {
		for credit += theirs.rate / 100; credit >= 1; credit-- { // a hundred steps a second
			m.add(now)
			theirs.answered(now, m.perSecond(now))
		}
		return theirs.rate
	})
	t.Logf("after twenty concurrent throttles at 100/s: ours %.1f/s, AWS %.1f/s; 95/s again after %v and %v",
		oursAfter, theirsAfter, oursTook, theirsTook)
	if math.Abs(oursAfter-70) > 1e-9 || oursTook > 5010*time.Millisecond {
		t.Errorf("ours: %.2f/s, back after %v", oursAfter, oursTook)
	}
	if theirsAfter > 1 || theirsTook < oursTook {
		t.Errorf("AWS: %.2f/s, back after %v: the comparison is not what it was", theirsAfter, theirsTook)
	}
}

func TestBucketKeepsItsRateWhileItChanges(t *testing.T) {
	start := time.Unix(1000, 0)
	var b bucket
	b.reset(start, start)
	sent, wait, ok := 0, time.Duration(0), false
	for now := start; now.Sub(start) < 20*time.Second; now = now.Add(time.Millisecond) {
		r := 10.0
		if now.Sub(start) >= 10*time.Second {
			r = 20
		}
		if wait, ok = b.take(now, r, 1); ok {
			sent++
		} else if wait <= 0 || wait > 100*time.Millisecond {
			t.Fatalf("wait %v at %v/s", wait, r)
		}
	}
	if sent < 297 || sent > 300 {
		t.Errorf("%d sent, want 10 s at 10/s and 10 s at 20/s", sent)
	}
}

func TestBucketStartsWithOneTokenAfterAPause(t *testing.T) {
	start := time.Unix(1000, 0)
	end := start.Add(5 * time.Second)
	var b bucket
	b.reset(end, start)
	if wait, ok := b.take(start, 10, 1); ok || wait != 5*time.Second {
		t.Errorf("during the pause: %v, wait %v", ok, wait)
	}
	if _, ok := b.take(end, 10, 1); !ok {
		t.Error("nothing at the end of the pause")
	}
	if wait, ok := b.take(end, 10, 1); ok || wait != 100*time.Millisecond {
		t.Errorf("second call at the end of the pause: %v, wait %v", ok, wait)
	}
	b.give()
	if _, ok := b.take(end.Add(-time.Hour), 10, 1); ok {
		t.Error("a clock that stepped back got a token out of the pause")
	}
}
