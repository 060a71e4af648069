package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
)

// randomRequest is anything a limiter may say, and some things it would not.
func randomRequest(rnd *rand.Rand, key string) account.Request {
	limits := []account.Limit{
		{Rate: 1000, Burst: 100}, {Rate: 2, Burst: 1}, {Rate: 3.0 / 86400, Burst: 3}, {Rate: 0.1, Burst: 50},
		{Rate: 1e6, Burst: 1e6}, {Rate: 333.3333, Burst: 7, Version: 1}, {Rate: 50, Burst: 500, Version: 2},
	}
	r := account.Request{Key: key, Limit: limits[rnd.IntN(len(limits))], Seen: -1}
	r.Want = rnd.IntN(20)
	r.Need = rnd.IntN(r.Want + 1)
	r.Least = rnd.IntN(r.Need + 1)
	r.Share = rnd.IntN(8)
	maybe := func(n int, set func()) {
		if rnd.IntN(n) == 0 {
			set()
		}
	}
	maybe(2, func() { r.Reserve = rnd.Int64N(50 * account.Micro) })
	maybe(2, func() { r.Life = time.Duration(1+rnd.IntN(400)) * time.Millisecond })
	maybe(2, func() { r.Gone = rnd.IntN(20) })
	maybe(8, func() { r.Debit = rnd.Int64N(100 * account.Micro) })
	r.Missing = r.Debit
	maybe(4, func() { r.Missing, r.Filling = rnd.Int64N(100*account.Micro), rnd.Float64()*100 })
	maybe(8, func() { r.Charge = rnd.Int64N(20*account.Micro) - 10*account.Micro })
	maybe(20, func() { r.Pause = time.Duration(rnd.IntN(3000)) * time.Millisecond })
	maybe(10, func() { r.Cut = 0.7 })
	maybe(2, func() { r.Seen = rnd.Int64N(3) })
	maybe(20, func() { r.Touch = true })
	if r.Debit > 0 || r.Charge > 0 {
		r.Bill, r.Payer = 1+rnd.Int64N(10), strings.TrimSuffix(key, "b")+"d:me"
	}
	return r
}

// sameAsModel runs requests through the script and the model and compares answers.
// next moves the clock that the script reads.
func sameAsModel(t *testing.T, rdb redis.UniversalClient, rounds int, next func(rnd *rand.Rand)) {
	t.Helper()
	s := New(rdb, time.Second)
	defer s.Close()
	rnd := rand.New(rand.NewPCG(3, 4))
	var now int64
	m := accounttest.NewModel(func() int64 { return now })
	for i := range rounds {
		next(rnd)
		key := fmt.Sprintf("headgate:v1:{same%d}:b", i/500)
		r := randomRequest(rnd, key)
		text, err := s.lease(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		got, at, err := parseReply(text)
		if err != nil {
			t.Fatal(err)
		}
		now = at
		want, _ := m.Lease(context.Background(), r)
		if got != want {
			t.Fatalf("round %d: %+v\nscript %+v\nmodel  %+v\nbucket %+v", i, r, got, want, m.Buckets[key])
		}
	}
}

func TestScriptAgreesWithItsModel(t *testing.T) {
	t.Run("on a real server", func(t *testing.T) {
		s := redistest.Start(t)
		sameAsModel(t, s.Client(t), 3000, func(rnd *rand.Rand) {
			if rnd.IntN(50) == 0 {
				time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
			}
		})
	})
	t.Run("in virtual time", func(t *testing.T) {
		mr := miniredis.RunT(t)
		now := time.Unix(1_800_000_000, 0)
		c := redis.NewClient(&redis.Options{Addr: mr.Addr()})
		defer c.Close()
		sameAsModel(t, c, 10000, func(rnd *rand.Rand) {
			step := time.Duration(rnd.ExpFloat64() * float64(20*time.Millisecond))
			if rnd.IntN(100) == 0 {
				step = time.Duration(rnd.IntN(5000)) * time.Millisecond
			}
			now = now.Add(step)
			mr.SetTime(now)
			mr.FastForward(step)
		})
	})
}

// virtual is a store on miniredis whose clock the test moves.
type virtual struct {
	t     *testing.T
	mr    *miniredis.Miniredis
	now   time.Time
	store *Redis
}

func newVirtual(t *testing.T) *virtual {
	mr := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: mr.Addr()})
	t.Cleanup(func() { c.Close() })
	v := &virtual{t: t, mr: mr, now: time.Unix(1_800_000_000, 0), store: New(c, time.Second)}
	t.Cleanup(func() { v.store.Close() })
	mr.SetTime(v.now)
	return v
}

func (v *virtual) pass(d time.Duration) {
	v.now = v.now.Add(d)
	v.mr.SetTime(v.now)
	if d > 0 {
		v.mr.FastForward(d)
	}
}

func (v *virtual) lease(r account.Request) account.Reply {
	v.t.Helper()
	v.store.ahead.Store(0) // the test's clock is not this machine's
	r.Key = "headgate:v1:{v}:b"
	if r.Seen == 0 {
		r.Seen = -1
	}
	rep, err := v.store.Lease(context.Background(), r)
	if err != nil {
		v.t.Fatal(err)
	}
	return rep
}

// take asks for n at once, all or nothing.
func (v *virtual) take(n int, l account.Limit) account.Reply {
	return v.lease(account.Request{Limit: l, Want: n, Need: n, Least: n})
}

func TestServersClockStepsBack(t *testing.T) {
	v, l := newVirtual(t), account.Limit{Rate: 10, Burst: 10}
	v.take(10, l)
	v.pass(-500 * time.Millisecond)
	if r := v.take(1, l); r.Granted != 0 {
		t.Errorf("a small step back refilled: %+v", r)
	}
	v.pass(600 * time.Millisecond) // 100 ms after the first call
	if r := v.take(1, l); r.Granted != 1 {
		t.Errorf("100 ms brought no token: %+v", r)
	}
	v.pass(-time.Hour) // a new primary far behind
	v.take(1, l)
	v.pass(100 * time.Millisecond)
	if r := v.take(1, l); r.Granted != 1 {
		t.Errorf("the key is frozen until the clock catches up: %+v", r)
	}
	v.pass(24 * time.Hour)
	if r := v.take(11, l); r.Granted != 0 || r.Before > 10*account.Micro {
		t.Errorf("a step forward brought more than a burst: %+v", r)
	}
}

func TestNumbersOfTheNewestVersionAreInForce(t *testing.T) {
	v := newVirtual(t)
	older, newer := account.Limit{Rate: 10, Burst: 100, Version: 1}, account.Limit{Rate: 20, Burst: 5, Version: 2}
	v.take(98, older)
	if r := v.take(1, newer); r.Limit != newer || r.Before != 2*account.Micro {
		t.Errorf("a new limit keeps the balance: %+v", r)
	}
	for range 3 {
		if r := v.take(1, older); r.Limit != newer {
			t.Errorf("an older caller changed the numbers: %+v", r)
		}
	}
	v.pass(900 * time.Millisecond)
	if r := v.take(6, older); r.Granted != 0 || r.Before != 5*account.Micro {
		t.Errorf("the newer burst does not bound an older caller: %+v", r)
	}
}

func TestSlowBucketsLoseNothingToFrequentCalls(t *testing.T) {
	v, l := newVirtual(t), account.Limit{Rate: 3.0 / 86400, Burst: 3}
	v.take(3, l)
	for range 3999 { // each writes, and brings 250 micro-tokens less a rounding
		v.pass(7200 * time.Millisecond)
		if r := v.lease(account.Request{Limit: l, Want: 1, Need: 1, Least: 1, Touch: true}); r.Granted != 0 {
			t.Fatal("too early")
		}
	}
	v.pass(7200 * time.Millisecond)
	if r := v.take(1, l); r.Granted != 1 {
		t.Errorf("after exactly 28800 s: %+v", r)
	}
}

// What was spent elsewhere must not shut a slow bucket for long, however much it was.
func TestDebitIsBounded(t *testing.T) {
	for _, c := range []struct {
		limit account.Limit
		floor int64
	}{{account.Limit{Rate: 0.1, Burst: 100}, 0}, {account.Limit{Rate: 10, Burst: 100}, -20}, {account.Limit{Rate: 1000, Burst: 100}, -100}} {
		v := newVirtual(t)
		for range 2 {
			v.lease(account.Request{Limit: c.limit, Debit: 100 * account.Micro, Missing: 100 * account.Micro})
		}
		if r := v.lease(account.Request{Limit: c.limit, Debit: 100 * account.Micro, Missing: 100 * account.Micro}); r.Before != c.floor*account.Micro {
			t.Errorf("%+v: %+v", c, r)
		}
		if r := v.lease(account.Request{Limit: c.limit, Charge: 5 * account.Micro}); r.Before != (c.floor-5)*account.Micro {
			t.Errorf("a charge must count in any case: %+v", r)
		}
	}
}

func TestThrottlePausesCutsOnceAndRecovers(t *testing.T) {
	v, l := newVirtual(t), account.Limit{Rate: 100, Burst: 10}
	v.take(10, l)
	for range 20 {
		v.lease(account.Request{Limit: l, Pause: 2 * time.Second, Cut: 0.7, Seen: -1})
	}
	r := v.take(1, l)
	if r.Granted != 0 || r.Epoch != 1 || r.Multiplier != 0.7 || r.Pause != 2*time.Second {
		t.Fatalf("%+v", r)
	}
	v.pass(2 * time.Second)
	if r := v.take(1, l); r.Granted != 0 {
		t.Errorf("the pause ends in a burst: %+v", r)
	}
	v.pass(4 * time.Second)
	if r := v.take(1, l); r.Multiplier < 0.899 || r.Multiplier > 0.901 {
		t.Errorf("4 s after the hold the multiplier is %v", r.Multiplier)
	}
	v.lease(account.Request{Limit: l, Cut: 0.7, Seen: 7})
	if r := v.take(1, l); r.Epoch != 1 {
		t.Errorf("news from before the last cut cut again: %+v", r)
	}
	v.pass(time.Minute)
	if r := v.take(1, l); r.Multiplier != 1 {
		t.Errorf("%+v", r)
	}
}

// Slots that are out count against the burst, until they must have perished.
func TestBucketDoesNotFillBesideSlots(t *testing.T) {
	v, l := newVirtual(t), account.Limit{Rate: 1000, Burst: 100}
	lease := account.Request{Limit: l, Want: 24, Share: 24, Reserve: 50 * account.Micro, Life: 250 * time.Millisecond}
	v.lease(lease)
	v.pass(100 * time.Millisecond)
	idle := account.Request{Limit: l, Life: lease.Life}
	if r := v.lease(idle); r.Before != 76*account.Micro {
		t.Errorf("filled beside 24 slots: %+v", r)
	}
	v.pass(10 * time.Millisecond)
	idle.Gone = 24
	if r := v.lease(idle); r.Before != 76*account.Micro {
		t.Errorf("what was spent cannot have refilled before: %+v", r)
	}
	v.pass(10 * time.Millisecond)
	if r := v.lease(idle); r.Before != 86*account.Micro {
		t.Errorf("10 ms after they were spent: %+v", r)
	}
	v.lease(lease) // by a process that dies now
	v.pass(501 * time.Millisecond)
	if r := v.lease(account.Request{Limit: l, Life: lease.Life}); r.Before != 100*account.Micro {
		t.Errorf("slots of the dead are kept: %+v", r)
	}
}

func TestKeysAlwaysExpire(t *testing.T) {
	v := newVirtual(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	// (burst + reserve) at a tenth of the rate, a pause, a climb after its hold.
	longest := 150*time.Second + 3*time.Second + 21*time.Second + time.Second
	for range 2000 {
		v.pass(time.Duration(rnd.IntN(100)) * time.Millisecond)
		r := randomRequest(rnd, "")
		r.Limit, r.Charge = account.Limit{Rate: 10, Burst: 100}, 0
		v.lease(r)
		for _, k := range v.mr.Keys() {
			if ttl := v.mr.TTL(k); ttl <= 0 || ttl > longest {
				t.Fatalf("%s expires in %v, bound %v", k, ttl, longest)
			}
		}
	}
}

func TestGarbageInTheStoreIsAFullBucket(t *testing.T) {
	for _, junk := range []string{"", "x", "1 2 3", strings.Repeat("9 ", 13), "1 1 1 1 1 1 1 nan x 1 1 1 1"} {
		v, l := newVirtual(t), account.Limit{Rate: 10, Burst: 10}
		v.mr.Set("headgate:v1:{v}:b", junk)
		if r := v.take(10, l); r.Granted != 10 {
			t.Errorf("%q: %+v", junk, r)
		}
		if r := v.take(1, l); r.Granted != 0 {
			t.Errorf("%q: %+v", junk, r)
		}
	}
}
