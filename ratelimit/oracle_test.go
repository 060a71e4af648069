package ratelimit

import (
	"context"
	"math"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

// On a steady clock and without refunds a bucket is a rate.Limiter. That one counts
// in floats, so where it is within a millionth of a token of the verdict it may
// differ, and the two part ways: the comparison ends there.
func TestBucketIsARateLimiter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rate.Limit(rapid.OneOf(
			rapid.Float64Range(1e-4, 1),
			rapid.Float64Range(1, 1e6),
			rapid.SampledFrom([]float64{1, 3, 10, 1.0 / 3, 3.0 / 86400, 1e6}),
		).Draw(t, "rate"))
		burst := rapid.IntRange(1, 50).Draw(t, "burst")
		ours, oracle := PerKey(limit, burst), rate.NewLimiter(limit, burst)
		now := epoch
		for range rapid.IntRange(1, 100).Draw(t, "requests") {
			pause := rapid.Float64Range(0, 3).Draw(t, "tokens") / float64(limit) * 1e9
			now = now.Add(time.Duration(min(pause, 1e15)))
			cost := rapid.IntRange(1, burst).Draw(t, "cost")
			held := oracle.TokensAt(now)
			if math.Abs(held-math.Round(held)) < 1e-6 {
				return
			}
			want := oracle.AllowN(now, cost)
			d := ours.Take(context.Background(), now, Key{}, cost, 0)
			if d.OK != want {
				t.Fatalf("got %+v, rate.Limiter says %v with %v tokens", d, want, held)
			}
			if left := int(oracle.TokensAt(now)); d.Remaining != max(left, 0) {
				t.Fatalf("%d left, rate.Limiter has %v", d.Remaining, oracle.TokensAt(now))
			}
			if !d.OK {
				wait := (float64(cost) - held) / float64(limit) * 1e9
				if math.Abs(float64(d.Wait)-wait) > 2+wait*1e-9 {
					t.Fatalf("wait %v, rate.Limiter needs %v ns", d.Wait, wait)
				}
			}
		}
	})
}

// Whatever numbers and instants a bucket is given: no panic, nothing negative, no
// wait that is not good for what it was given for.
func FuzzTake(f *testing.F) {
	f.Add(50.0, 100, int64(0), int64(1e9), 1, 5, int64(0))
	f.Add(1e15, math.MaxInt, int64(math.MinInt64), int64(math.MaxInt64), math.MaxInt, -1, int64(math.MaxInt64))
	f.Add(1e-9, 1, int64(-5), int64(5), math.MinInt, math.MaxInt, int64(-1))
	f.Add(math.Inf(1), 0, int64(0), int64(0), 0, 0, int64(0))
	f.Add(0.1+0.2, 3, int64(1), int64(1e18), 2, 3, int64(1e18))
	f.Fuzz(func(t *testing.T, limit float64, burst int, first, second int64, cost1, cost2 int, maxWait int64) {
		l := PerKey(rate.Limit(limit), burst)
		take := func(at int64, cost int) Decision {
			now := epoch.Add(time.Duration(at))
			d := l.Take(context.Background(), now, Key{}, cost, time.Duration(maxWait))
			if d.Wait < 0 || d.Remaining < 0 || d.Reset < 0 || d.OK && d.Never {
				t.Fatalf("%+v", d)
			}
			if l.Validate() != nil && d.OK {
				t.Fatalf("not valid, yet %+v", d)
			}
			if d.OK && d.Wait > max(0, time.Duration(maxWait)) {
				t.Fatalf("%+v: longer than %d", d, maxWait)
			}
			if !d.OK && !d.Never && time.Duration(at)+d.Wait > 0 && d.Wait < 1<<59 {
				if then := l.Peek(now.Add(d.Wait), Key{}, cost, 0); !then.OK {
					t.Fatalf("%+v, then %+v", d, then)
				}
			}
			return d
		}
		d := take(first, cost1)
		take(second, cost2)
		d.Adjust(epoch.Add(time.Duration(second)), cost2)
		take(second, cost1)
		d.Undo(epoch.Add(time.Duration(first)))
		take(first, cost2)
	})
}
