package window

import (
	"math"
	"testing"
	"testing/synctest"

	"github.com/go-chi/httprate"

	"github.com/headgate-go/headgate/ratelimit"
)

func TestChargeAfterwardsReachesTheQuota(t *testing.T) {
	for name, counter := range map[string]func() httprate.LimitCounter{
		"own counter":     func() httprate.LimitCounter { return nil },
		"foreign counter": func() httprate.LimitCounter { return httprate.NewLocalLimitCounter(day) },
	} {
		for _, tc := range []struct{ by, left int }{
			{5, 2}, {0, 7}, {-2, 9}, {-3, 10}, {-100, 10}, {math.MinInt, 10}, {7, 0}, {100, 0}, {math.MaxInt, 0},
		} {
			synctest.Test(t, func(t *testing.T) {
				l := MustNew(Options{Quota: 10, Length: day, Counter: counter()})
				d := take(l, midnight, "a", 3)
				d.Adjust(midnight, tc.by)
				synctest.Wait()
				d = take(l, midnight, "a", 1)
				if left := d.Remaining; d.OK != (tc.left > 0) || d.OK && left != tc.left-1 {
					t.Errorf("%s: by %d: %+v, want %d left", name, tc.by, d, tc.left)
				}
				if !d.OK && !take(l, midnight.Add(d.Wait), "a", 1).OK {
					t.Errorf("%s: by %d: advice of %v followed exactly was refused", name, tc.by, d.Wait)
				}
			})
		}
	}
}

func TestPeekIsTakeThatTakesNothing(t *testing.T) {
	l := MustNew(Options{Quota: 3, Length: day, MaxKeys: 1, Plans: map[string]int{"none": 0, "all": Unlimited}})
	noon := midnight.Add(day / 2)
	for _, key := range []ratelimit.Key{{ID: "a"}, {ID: "newcomer"}, {ID: "c", Plan: "none"}, {ID: "d", Plan: "all"}} {
		for cost := range 5 {
			for range 3 {
				peeked := l.Peek(noon, key, cost, 0)
				taken := l.Take(t.Context(), noon, key, cost, 0)
				taken.Grant, taken.Source = ratelimit.Grant{}, 0
				if taken.OK && taken.Remaining != math.MaxInt {
					peeked.Remaining = taken.Remaining // what is left after, not before
				}
				if peeked != taken {
					t.Errorf("%v, cost %d: looked at %+v, taken %+v", key, cost, peeked, taken)
				}
			}
		}
	}
	if d := l.Peek(noon, ratelimit.Key{ID: "a"}, 1, 0); d.OK {
		t.Errorf("the quota is used up: %+v", d)
	}
	bad := PerKey(0, day)
	if d := bad.Peek(noon, ratelimit.Key{}, 1, 0); d.OK || !d.Never {
		t.Errorf("a limiter that makes no sense: %+v", d)
	}
}
