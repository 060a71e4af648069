package ratelimit_test

import (
	"context"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func key(id string) ratelimit.Key { return ratelimit.Key{Space: "key", ID: id} }

// take asks without waiting.
func take(l ratelimit.Limiter, now time.Time, id string, cost int) ratelimit.Decision {
	return l.Take(context.Background(), now, key(id), cost, 0)
}

func valid(t testing.TB, l ratelimit.Limiter) ratelimit.Limiter {
	t.Helper()
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	return l
}

// Three a day are 28,800 s apart, however the rate is written.
//
// Case RL-03: public reports on rate limiters
func TestASlowRateIsExact(t *testing.T) {
	for name, perDay := range map[string]rate.Limit{
		"three in 86400 s":  3.0 / 86400,
		"every eight hours": rate.Every(8 * time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			l := valid(t, ratelimit.PerKey(perDay, 3))
			for left := 2; left >= 0; left-- {
				if d := take(l, t0, "a", 1); !d.OK || d.Remaining != left {
					t.Fatalf("got %+v, want admitted with %d left", d, left)
				}
			}
			d := take(l, t0, "a", 1)
			if d.OK || d.Never || d.Wait != 28800*time.Second || d.Remaining != 0 {
				t.Fatalf("got %+v, want refused for 28800 s", d)
			}
			if d := take(l, t0.Add(d.Wait-1), "a", 1); d.OK || d.Wait != 1 {
				t.Errorf("a nanosecond early: %+v, want refused for 1 ns", d)
			}
			if d := take(l, t0.Add(d.Wait), "a", 1); !d.OK || d.Remaining != 0 {
				t.Errorf("as advised: %+v, want admitted", d)
			}
			if d := take(l, t0.Add(d.Wait), "a", 1); d.OK || d.Remaining != 0 {
				t.Errorf("once more: %+v, want refused", d)
			}
		})
	}
}

// Bursts at the edges of the number types.
//
// Case RL-05: public reports on rate limiters
func TestHugeBurstsDoNotOverflow(t *testing.T) {
	for _, wide := range []int64{1 << 31, 1<<53 + 1, math.MaxInt64} {
		burst := int(min(wide, math.MaxInt)) // what an int holds on this machine
		t.Run(strconv.Itoa(burst), func(t *testing.T) {
			l := valid(t, ratelimit.PerKey(10, burst))
			for i := range 3 {
				d := take(l, t0, "a", 1)
				if !d.OK || d.Wait != 0 || d.Remaining != burst-1-i || d.Reset < 0 {
					t.Fatalf("request %d: %+v", i, d)
				}
			}
			if d := take(l, t0, "a", burst-3); !d.OK || d.Remaining != 0 || d.Reset < 0 {
				t.Fatalf("all the rest: %+v", d)
			}
			if d := take(l, t0, "a", burst); d.OK || d.Never || d.Wait < time.Hour {
				t.Fatalf("a whole burst more: %+v, want a long wait", d)
			}
			if d := take(l, t0.Add(100*time.Millisecond), "a", 1); !d.OK {
				t.Fatalf("after a tenth of a second: %+v, want one more", d)
			}
		})
	}
}

// A number that makes no sense, or means nothing, admits no more than it says.
//
// Case RL-06: public reports on rate limiters
func TestOddNumbersAreNeverUnlimited(t *testing.T) {
	for name, c := range map[string]struct {
		limit rate.Limit
		burst int
		field string // in the error; "" when valid
		ever  int    // how many pass in all, of 100 in a century
	}{
		"rate 0, burst 0":  {0, 0, "burst", 0},
		"rate 0, burst 1":  {0, 1, "", 1},
		"rate 0, burst 7":  {0, 7, "", 7},
		"rate 1, burst 0":  {1, 0, "burst", 0},
		"rate 1, burst -1": {1, -1, "burst", 0},
		"rate -1":          {-1, 1, "rate", 0},
		"rate NaN":         {rate.Limit(math.NaN()), 1, "rate", 0},
		"rate +Inf":        {rate.Limit(math.Inf(1)), 1, "Unlimited", 0},
		"rate.Inf":         {rate.Inf, 1, "Unlimited", 0},
		"rate above any":   {1e18, 1, "rate", 0},
		"rate below any":   {1e-12, 1, "rate", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := ratelimit.PerKey(c.limit, c.burst)
			err := l.Validate()
			if (err == nil) != (c.field == "") || err != nil && !strings.Contains(err.Error(), c.field) {
				t.Errorf("Validate() = %v, want an error naming %q", err, c.field)
			}
			passed := 0
			for i := range 100 {
				d := take(l, t0.AddDate(i, 0, 0), "a", 1)
				if d.OK {
					passed++
				} else if !d.Never {
					t.Fatalf("got %+v, want Never: no waiting helps", d)
				}
			}
			if passed != c.ever {
				t.Errorf("%d passed, want %d ever", passed, c.ever)
			}
		})
	}
}

// In any window T at most burst + rate·T pass, however often is asked.
//
// Case RL-09: public reports on rate limiters
func TestPollingAWaitingBucketGainsNothing(t *testing.T) {
	l := valid(t, ratelimit.PerKey(rate.Every(time.Minute), 10))
	var passed []time.Duration
	for range 10 {
		if take(l, t0, "a", 1).OK {
			passed = append(passed, 0)
		}
	}
	for at := 5 * time.Second; at <= 10*time.Minute; at += 5 * time.Second {
		if take(l, t0.Add(at), "a", 1).OK {
			passed = append(passed, at)
		}
	}
	if len(passed) != 20 {
		t.Errorf("%d admitted, want exactly 20", len(passed))
	}
	for i, from := range passed {
		for j, to := range passed[i:] {
			if most := 10 + int((to-from)/time.Minute); j+1 > most {
				t.Fatalf("%d in [%v, %v], want at most %d", j+1, from, to, most)
			}
		}
	}
}

// One caller over its limit uses up nothing that others share.
//
// Case RL-12: public reports on rate limiters
func TestAKeysOwnRefusalTakesNothingFromTheSharedLimit(t *testing.T) {
	for name, l := range map[string]ratelimit.Limiter{
		"tenant first": ratelimit.All(ratelimit.PerKey(rate.Every(time.Minute), 1), ratelimit.Global(10.0/60, 10)),
		"global first": ratelimit.All(ratelimit.Global(10.0/60, 10), ratelimit.PerKey(rate.Every(time.Minute), 1)),
	} {
		t.Run(name, func(t *testing.T) {
			valid(t, l)
			for i := range 20 {
				if d := take(l, t0, "A", 1); d.OK != (i == 0) {
					t.Fatalf("A's request %d: %+v", i, d)
				}
			}
			for tenant := 'B'; tenant <= 'J'; tenant++ {
				if d := take(l, t0, string(tenant), 1); !d.OK {
					t.Errorf("tenant %c: %+v, want admitted", tenant, d)
				}
			}
			if d := take(l, t0, "K", 1); d.OK || d.Policy != "global" || d.Wait != 6*time.Second {
				t.Errorf("the eleventh: %+v, want refused by the global limit for 6 s", d)
			}
			if d := take(l, t0, "A", 1); d.OK || d.Policy != "default" || d.Wait != time.Minute {
				t.Errorf("A again: %+v, want the longer wait of the two, a minute", d)
			}
		})
	}
}

// A request that costs too much leaves the tokens for a smaller one.
//
// Case RL-15: public reports on rate limiters
func TestARefusalTakesNothing(t *testing.T) {
	l := valid(t, ratelimit.PerKey(rate.Every(time.Hour), 10))
	take(l, t0, "a", 8)
	if d := take(l, t0, "a", 5); d.OK || d.Remaining != 2 || d.Wait != 3*time.Hour {
		t.Errorf("cost 5: %+v, want refused for 3 h with 2 left", d)
	}
	if d := take(l, t0, "a", 2); !d.OK || d.Remaining != 0 {
		t.Errorf("cost 2: %+v, want admitted", d)
	}
}

// offer asks evenly for a while and returns how many were admitted.
func offer(l ratelimit.Limiter, perSecond int, during time.Duration) (admitted int) {
	n := int(during.Seconds() * float64(perSecond))
	for i := range n {
		if take(l, t0.Add(time.Duration(i)*time.Second/time.Duration(perSecond)), "a", 1).OK {
			admitted++
		}
	}
	return admitted
}

// Five times the rate is offered; the rate and the burst pass.
//
// Case RL-23: public reports on rate limiters
func TestOverloadAdmitsTheRate(t *testing.T) {
	l := valid(t, ratelimit.PerKey(1000, 1000))
	if n := offer(l, 5000, 10*time.Second); n < 10_900 || n > 11_100 {
		t.Errorf("%d admitted, want 11,000 within 1 %%", n)
	}
}

// How long work takes is no matter of the rate.
//
// Case RL-24: public reports on rate limiters
func TestLongHandlersDoNotMatterToTheRate(t *testing.T) {
	// No call tells a limiter how long handlers run.
	l := valid(t, ratelimit.PerKey(10, 10))
	if n := offer(l, 20, 5*time.Second); n < 58 || n > 61 {
		t.Errorf("%d of 100 admitted, want 58 to 61", n)
	}
}
