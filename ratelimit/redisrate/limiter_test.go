package redisrate

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account/accounttest"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/redistest"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/store"
)

var quiet = logger(slog.New(slog.DiscardHandler))

// shipped are the default timeouts. Tests of anything but them have longer ones: a
// machine that is busy with other tests is not an outage.
var shipped = timeouts(20*time.Millisecond, 100*time.Millisecond)

func perKey(t testing.TB, rdb redis.UniversalClient, r float64, burst int, o ...option) *Limiter {
	t.Helper()
	l := PerKey(rdb, rate.Limit(r), burst, with(append([]option{quiet, timeouts(2*time.Second, 2*time.Second)}, o...)...))
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func take(l ratelimit.Limiter, key string, cost int, maxWait time.Duration) ratelimit.Decision {
	return l.Take(context.Background(), time.Now(), ratelimit.Key{ID: key}, cost, maxWait)
}

// admit asks n times and counts.
func admit(l ratelimit.Limiter, key string, n int) (ok int) {
	for range n {
		if take(l, key, 1, 0).OK {
			ok++
		}
	}
	return ok
}

func TestRefusalsCostNoCall(t *testing.T) {
	l := perKey(t, redistest.Start(t).Client(t), slow, 10)
	if got := admit(l, "a", 1000); got != 10 {
		t.Errorf("admitted %d of burst 10", got)
	}
	if n := calls(l); n != 10 {
		t.Errorf("%d calls, want one for each admission", n)
	}
	d := take(l, "a", 1, 0)
	if d.OK || d.Source != ratelimit.SourceDenialCache || d.Wait < 3590*time.Second || d.Wait > 3600*time.Second {
		t.Errorf("%+v", d)
	}
}

func TestARefusalTakesNothing(t *testing.T) {
	l := perKey(t, redistest.Start(t).Client(t), slow, 10)
	admit(l, "a", 8)
	if d := take(l, "a", 5, 0); d.OK {
		t.Errorf("%+v", d)
	}
	if d := take(l, "a", 2, 0); !d.OK || d.Remaining != 0 {
		t.Errorf("%+v", d)
	}
	if d := take(l, "a", 11, 0); !d.Never {
		t.Errorf("a cost above the burst: %+v", d)
	}
}

func TestAdviceFollowedIsAdmitted(t *testing.T) {
	l := perKey(t, redistest.Start(t).Client(t), 20, 1)
	for range 10 {
		if d := take(l, "a", 1, 0); !d.OK {
			time.Sleep(d.Wait)
			if d = take(l, "a", 1, 0); !d.OK {
				t.Fatalf("%+v", d)
			}
		}
	}
}

func TestPatientCallersQueueUp(t *testing.T) {
	s := redistest.Start(t)
	for kind, r := range map[string]float64{"direct": 20, "leased": 500} {
		l := perKey(t, s.Client(t), r, 1, name(kind))
		var mu sync.Mutex
		var due []time.Duration
		var wg sync.WaitGroup
		begin := time.Now()
		for range 50 {
			wg.Go(func() {
				if d := take(l, "a", 1, time.Hour); d.OK {
					mu.Lock()
					due = append(due, d.Grant.At.Add(d.Wait).Sub(begin))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(due) != 50 {
			t.Errorf("%s: %d of 50 patient callers admitted", kind, len(due))
		}
		// Replies that overtake each other blur the stream by as much as they are late.
		if over := accounttest.Excess(due, r, 1); over > 1 {
			t.Errorf("%s: %.2f tokens above burst + rate·t", kind, over)
		}
	}
}

func TestUndoneTokensReachOtherProcesses(t *testing.T) {
	s := redistest.Start(t)
	a, b := perKey(t, s.Client(t), slow, 3), perKey(t, s.Client(t), slow, 3)
	d := take(a, "k", 3, 0)
	d.Undo(time.Now())
	if d := take(a, "k", 1, 0); !d.OK { // at once, here
		t.Fatalf("%+v", d)
	}
	redistest.Eventually(t, 5*time.Second, "the rest is given back", func() bool { return calls(a) == 2 })
	if d := take(b, "k", 2, 0); !d.OK {
		t.Errorf("%+v", d)
	}
	if d := take(b, "k", 1, 0); d.OK {
		t.Errorf("more came back than was taken: %+v", d)
	}
}

func TestAdjustChargesAfterTheFact(t *testing.T) {
	s := redistest.Start(t)
	a, b := perKey(t, s.Client(t), slow, 10), perKey(t, s.Client(t), slow, 10)
	take(a, "k", 1, 0).Adjust(time.Now(), 8)
	redistest.Eventually(t, 5*time.Second, "the charge is in the bucket", func() bool {
		return b.Peek(time.Now(), ratelimit.Key{ID: "k"}, 1, 0).OK && calls(a) > 1
	})
	if got := admit(b, "k", 5); got != 1 {
		t.Errorf("%d admitted beside a cost of 9 of 10", got)
	}
}

func TestPlansHaveTheirOwnNumbers(t *testing.T) {
	s := redistest.Start(t)
	l := Tiers(s.Client(t), ratelimit.Plan{Rate: slow, Burst: 2}, map[string]ratelimit.Plan{
		"gold": {Rate: slow, Burst: 5}, "staff": {Allow: ratelimit.AllowEverything}, "banned": {Allow: ratelimit.AllowNothing}, "plain": {},
	}, with(quiet))
	defer l.Close()
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	for plan, want := range map[string]int{"": 2, "gold": 5, "staff": 9, "banned": 0, "plain": 2, "unheard of": 2} {
		ok := 0
		for range 9 {
			if l.Take(context.Background(), time.Now(), ratelimit.Key{ID: "of " + plan, Plan: plan}, 1, 0).OK {
				ok++
			}
		}
		if ok != want {
			t.Errorf("plan %q: %d admitted, want %d", plan, ok, want)
		}
	}
	k := ratelimit.Key{ID: "of gold", Plan: "gold"}
	if p := l.Policy(k); p.Burst != 5 || l.PlanOf(k).Burst != 5 {
		t.Errorf("%+v", p)
	}
	k.Plan = ""
	if d := l.Take(context.Background(), time.Now(), k, 1, 0); d.OK {
		t.Errorf("changing the plan refilled the balance: %+v", d)
	}
}

// A caller that hangs up is not a store that is away, and loses nothing.
func TestHangingUpDoesNotSwitchTheCeilingOff(t *testing.T) {
	s := redistest.Start(t)
	l := perKey(t, s.Client(t), slow, 100)
	for i := range 300 {
		ctx, cancel := context.WithCancel(context.Background())
		if i%2 == 0 {
			cancel()
		} else {
			time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
		}
		l.Take(ctx, time.Now(), ratelimit.Key{ID: "k"}, 1, 0)
		cancel()
	}
	st := l.Snapshot()
	if st.Degraded || st.Decisions[ratelimit.SourceShare].Admitted > 0 {
		t.Errorf("%+v", st)
	}
}

func TestThrottleIsHeardByAll(t *testing.T) {
	s := redistest.Start(t)
	a, b := perKey(t, s.Client(t), 100, 10), perKey(t, s.Client(t), 100, 10)
	k := ratelimit.Key{ID: "k"}
	take(a, "k", 1, 0)
	take(b, "k", 1, 0)
	for range 20 {
		a.Throttled(time.Now(), k, 300*time.Millisecond, 0.7)
	}
	if d := take(a, "k", 1, 0); d.OK {
		t.Errorf("passes here during the pause: %+v", d)
	}
	redistest.Eventually(t, 2*time.Second, "the other process pauses", func() bool {
		d := take(b, "k", 1, 0)
		return !d.OK && d.Wait > 50*time.Millisecond
	})
	for _, l := range []*Limiter{a, b} {
		redistest.Eventually(t, 2*time.Second, "passes again", func() bool { return take(l, "k", 1, 0).OK })
		if p := l.Policy(k); p.Rate < 69 || p.Rate > 80 {
			t.Errorf("rate in force %v, want 70 %% of 100 and a little", p.Rate)
		}
	}
}

func TestManyKeysAreBounded(t *testing.T) {
	l := perKey(t, redistest.Start(t).Client(t), slow, 2, maxKeys(160))
	for i := range 2000 {
		if got := admit(l, string(rune('A'+i%26))+time.Duration(i).String(), 3); got != 2 {
			t.Fatalf("key %d: %d of 2 admitted", i, got)
		}
	}
	if st := l.Stats(); st.Keys > 160 || st.Peak > 160 {
		t.Errorf("%+v", st)
	}
}

func TestCloseIsIdempotentAndLeaves(t *testing.T) {
	s := redistest.Start(t)
	a, b := perKey(t, s.Client(t), 100, 10), perKey(t, s.Client(t), 100, 10)
	admit(a, "k", 1)
	admit(b, "k", 1)
	key := store.PeersKey("default")
	redistest.Eventually(t, 2*time.Second, "two peers", func() bool { return s.Do("zcard", key).(int64) == 2 })
	for range 2 {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := s.Do("zcard", key).(int64); n != 1 {
		t.Errorf("%d peers after one left", n)
	}
	if d := take(b, "k", 1, 0); d.Source != ratelimit.SourceShare {
		t.Errorf("a closed limiter decides by %v", d.Source)
	}
}

func TestBadNumbersAreNamed(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	for want, l := range map[string]*Limiter{
		"rate":           PerKey(rdb, 0, 1, Options{}),
		"rate -":         PerKey(rdb, -1, 1, Options{}),
		"infinite":       PerKey(rdb, rate.Inf, 1, Options{}),
		"burst":          PerKey(rdb, 1, 0, Options{}),
		"year":           PerKey(rdb, 1e-9, 5, Options{}),
		"Version":        PerKey(rdb, 1, 1, with(version(-1))),
		"MinPeers":       PerKey(rdb, 1, 1, with(minPeers(-1))),
		"Portion":        PerKey(rdb, 1, 1, with(portion(1.5))),
		"Interval":       PerKey(rdb, 1, 1, with(func(o *Options) { o.Interval = 1 })),
		"Ahead":          PerKey(rdb, 1, 1, with(ahead(-1))),
		"RequestTimeout": PerKey(rdb, 1, 1, with(timeouts(time.Second, time.Millisecond))),
		"MaxKeys":        PerKey(rdb, 1, 1, with(maxKeys(-1))),
		"outage":         PerKey(rdb, 1, 1, with(onOutage(9))),
		"gold":           Tiers(rdb, ratelimit.Plan{Rate: 1, Burst: 1}, map[string]ratelimit.Plan{"gold": {Rate: -1, Burst: 1}}, Options{}),
	} {
		err := l.Validate()
		if err == nil || !redistest.ContainsFold(err.Error(), want) {
			t.Errorf("%v, want %q named", err, want)
		}
		if d := take(l, "a", 1, 0); d.OK {
			t.Errorf("%s: admitted", want)
		}
	}
}
