package redisrate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// randomRequest is anything a limiter may say, and some things it would not.
func randomRequest(rnd *rand.Rand, key string) request {
	limits := []limit{
		{rate: 1000, burst: 100}, {rate: 2, burst: 1}, {rate: 3.0 / 86400, burst: 3}, {rate: 0.1, burst: 50},
		{rate: 1e6, burst: 1e6}, {rate: 333.3333, burst: 7, version: 1}, {rate: 50, burst: 500, version: 2},
	}
	r := request{key: key, limit: limits[rnd.IntN(len(limits))], seen: -1}
	r.want = rnd.IntN(20)
	r.need = rnd.IntN(r.want + 1)
	r.least = rnd.IntN(r.need + 1)
	r.share = rnd.IntN(8)
	maybe := func(n int, set func()) {
		if rnd.IntN(n) == 0 {
			set()
		}
	}
	maybe(2, func() { r.reserve = rnd.Int64N(50 * micro) })
	maybe(2, func() { r.life = time.Duration(1+rnd.IntN(400)) * time.Millisecond })
	maybe(2, func() { r.gone = rnd.IntN(20) })
	maybe(8, func() { r.debit = rnd.Int64N(100 * micro) })
	maybe(8, func() { r.lack = rnd.Int64N(100 * micro) })
	maybe(8, func() { r.charge = rnd.Int64N(20*micro) - 10*micro })
	maybe(20, func() { r.pause = time.Duration(rnd.IntN(3000)) * time.Millisecond })
	maybe(10, func() { r.cut = 0.7 })
	maybe(2, func() { r.seen = rnd.Int64N(3) })
	maybe(20, func() { r.touch = true })
	return r
}

// sameAsModel runs requests through the script and the model and compares answers.
// next moves the clock that the script reads.
func sameAsModel(t *testing.T, rdb redis.UniversalClient, rounds int, next func(rnd *rand.Rand)) {
	t.Helper()
	s := newRedisStore(rdb, time.Second)
	defer s.Close()
	rnd := rand.New(rand.NewPCG(3, 4))
	var now int64
	m := newModel(func() int64 { return now })
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
			t.Fatalf("round %d: %+v\nscript %+v\nmodel  %+v\nbucket %+v", i, r, got, want, m.buckets[key])
		}
	}
}

func TestScriptAgreesWithItsModel(t *testing.T) {
	t.Run("on a real server", func(t *testing.T) {
		s := startServer(t)
		sameAsModel(t, s.client(t), 3000, func(rnd *rand.Rand) {
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
	store *redisStore
}

func newVirtual(t *testing.T) *virtual {
	mr := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: mr.Addr()})
	t.Cleanup(func() { c.Close() })
	v := &virtual{t: t, mr: mr, now: time.Unix(1_800_000_000, 0), store: newRedisStore(c, time.Second)}
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

func (v *virtual) lease(r request) reply {
	v.t.Helper()
	v.store.ahead.Store(0) // the test's clock is not this machine's
	r.key = "headgate:v1:{v}:b"
	if r.seen == 0 {
		r.seen = -1
	}
	rep, err := v.store.Lease(context.Background(), r)
	if err != nil {
		v.t.Fatal(err)
	}
	return rep
}

// take asks for n at once, all or nothing.
func (v *virtual) take(n int, l limit) reply {
	return v.lease(request{limit: l, want: n, need: n, least: n})
}

func TestServersClockStepsBack(t *testing.T) {
	v, l := newVirtual(t), limit{rate: 10, burst: 10}
	v.take(10, l)
	v.pass(-500 * time.Millisecond)
	if r := v.take(1, l); r.granted != 0 {
		t.Errorf("a small step back refilled: %+v", r)
	}
	v.pass(600 * time.Millisecond) // 100 ms after the first call
	if r := v.take(1, l); r.granted != 1 {
		t.Errorf("100 ms brought no token: %+v", r)
	}
	v.pass(-time.Hour) // a new primary far behind
	v.take(1, l)
	v.pass(100 * time.Millisecond)
	if r := v.take(1, l); r.granted != 1 {
		t.Errorf("the key is frozen until the clock catches up: %+v", r)
	}
	v.pass(24 * time.Hour)
	if r := v.take(11, l); r.granted != 0 || r.before > 10*micro {
		t.Errorf("a step forward brought more than a burst: %+v", r)
	}
}

func TestNumbersOfTheNewestVersionAreInForce(t *testing.T) {
	v := newVirtual(t)
	older, newer := limit{rate: 10, burst: 100, version: 1}, limit{rate: 20, burst: 5, version: 2}
	v.take(98, older)
	if r := v.take(1, newer); r.limit != newer || r.before != 2*micro {
		t.Errorf("a new limit keeps the balance: %+v", r)
	}
	for range 3 {
		if r := v.take(1, older); r.limit != newer {
			t.Errorf("an older caller changed the numbers: %+v", r)
		}
	}
	v.pass(900 * time.Millisecond)
	if r := v.take(6, older); r.granted != 0 || r.before != 5*micro {
		t.Errorf("the newer burst does not bound an older caller: %+v", r)
	}
}

func TestSlowBucketsLoseNothingToFrequentCalls(t *testing.T) {
	v, l := newVirtual(t), limit{rate: 3.0 / 86400, burst: 3}
	v.take(3, l)
	for range 3999 { // each writes, and brings 250 micro-tokens less a rounding
		v.pass(7200 * time.Millisecond)
		if r := v.lease(request{limit: l, want: 1, need: 1, least: 1, touch: true}); r.granted != 0 {
			t.Fatal("too early")
		}
	}
	v.pass(7200 * time.Millisecond)
	if r := v.take(1, l); r.granted != 1 {
		t.Errorf("after exactly 28800 s: %+v", r)
	}
}

// What is spent elsewhere may be told twice, when an answer was lost. That must not
// shut a slow bucket for long.
func TestDebitIsBounded(t *testing.T) {
	for _, c := range []struct {
		limit limit
		floor int64
	}{{limit{rate: 0.1, burst: 100}, 0}, {limit{rate: 10, burst: 100}, -20}, {limit{rate: 1000, burst: 100}, -100}} {
		v := newVirtual(t)
		for range 2 {
			v.lease(request{limit: c.limit, debit: 100 * micro})
		}
		if r := v.lease(request{limit: c.limit, debit: 100 * micro}); r.before != c.floor*micro {
			t.Errorf("%+v: %+v", c, r)
		}
		if r := v.lease(request{limit: c.limit, charge: 5 * micro}); r.before != (c.floor-5)*micro {
			t.Errorf("a charge must count in any case: %+v", r)
		}
	}
}

func TestThrottlePausesCutsOnceAndRecovers(t *testing.T) {
	v, l := newVirtual(t), limit{rate: 100, burst: 10}
	v.take(10, l)
	for range 20 {
		v.lease(request{limit: l, pause: 2 * time.Second, cut: 0.7, seen: -1})
	}
	r := v.take(1, l)
	if r.granted != 0 || r.epoch != 1 || r.multiplier != 0.7 || r.pause != 2*time.Second {
		t.Fatalf("%+v", r)
	}
	v.pass(2 * time.Second)
	if r := v.take(1, l); r.granted != 0 {
		t.Errorf("the pause ends in a burst: %+v", r)
	}
	v.pass(4 * time.Second)
	if r := v.take(1, l); r.multiplier < 0.899 || r.multiplier > 0.901 {
		t.Errorf("4 s after the hold the multiplier is %v", r.multiplier)
	}
	v.lease(request{limit: l, cut: 0.7, seen: 7})
	if r := v.take(1, l); r.epoch != 1 {
		t.Errorf("news from before the last cut cut again: %+v", r)
	}
	v.pass(time.Minute)
	if r := v.take(1, l); r.multiplier != 1 {
		t.Errorf("%+v", r)
	}
}

// Slots that are out count against the burst, until they must have perished.
func TestBucketDoesNotFillBesideSlots(t *testing.T) {
	v, l := newVirtual(t), limit{rate: 1000, burst: 100}
	lease := request{limit: l, want: 24, share: 24, reserve: 50 * micro, life: 250 * time.Millisecond}
	v.lease(lease)
	v.pass(100 * time.Millisecond)
	idle := request{limit: l, life: lease.life}
	if r := v.lease(idle); r.before != 76*micro {
		t.Errorf("filled beside 24 slots: %+v", r)
	}
	v.pass(10 * time.Millisecond)
	idle.gone = 24
	if r := v.lease(idle); r.before != 76*micro {
		t.Errorf("what was spent cannot have refilled before: %+v", r)
	}
	v.pass(10 * time.Millisecond)
	if r := v.lease(idle); r.before != 86*micro {
		t.Errorf("10 ms after they were spent: %+v", r)
	}
	v.lease(lease) // by a process that dies now
	v.pass(501 * time.Millisecond)
	if r := v.lease(request{limit: l, life: lease.life}); r.before != 100*micro {
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
		r.limit, r.charge = limit{rate: 10, burst: 100}, 0
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
		v, l := newVirtual(t), limit{rate: 10, burst: 10}
		v.mr.Set("headgate:v1:{v}:b", junk)
		if r := v.take(10, l); r.granted != 10 {
			t.Errorf("%q: %+v", junk, r)
		}
		if r := v.take(1, l); r.granted != 0 {
			t.Errorf("%q: %+v", junk, r)
		}
	}
}
