package window

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/httprate"
	"pgregory.net/rapid"

	"github.com/headgate-go/headgate/ratelimit"
)

var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func take(l ratelimit.Limiter, now time.Time, id string, cost int) ratelimit.Decision {
	return l.Take(context.Background(), now, ratelimit.Key{Space: "key", ID: id}, cost, 0)
}

func TestAQuotaADay(t *testing.T) {
	l := PerKey(10_000, day)
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	noon := midnight.Add(day / 2)
	for i := range 10_000 {
		if d := take(l, noon, "a", 1); !d.OK || d.Remaining != 9999-i || d.Reset != day/2 {
			t.Fatalf("request %d: %+v", i, d)
		}
	}
	d := take(l, noon, "a", 1)
	if d.OK || d.Never || d.Remaining != 0 {
		t.Fatalf("one too many: %+v", d)
	}
	// The next day begins with all of yesterday's use, and a token fades in every
	// 8.64 s.
	if want := day/2 + 8640*time.Millisecond; d.Wait != want {
		t.Errorf("wait %v, want %v", d.Wait, want)
	}
	if d := take(l, noon, "b", 1); !d.OK {
		t.Errorf("another key: %+v", d)
	}
	if d := take(l, noon, "b", 10_001); !d.Never {
		t.Errorf("more than the quota: %+v, want Never", d)
	}
	if p := l.Policy(ratelimit.Key{}); p.Burst != 10_000 || p.Window != day || p.Name != "quota" {
		t.Errorf("policy %+v", p)
	}
}

// The advice of a refusal, followed to the nanosecond, is admitted, and in no
// aligned window more than the quota passes.
func TestAdviceIsExactAndWindowsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quota := rapid.IntRange(1, 50).Draw(t, "quota")
		length := time.Duration(rapid.IntRange(1, 7).Draw(t, "seconds")) * time.Second
		l := PerKey(quota, length)
		now := midnight
		passed := map[time.Time]int{}
		admit := func(at time.Time, cost int) ratelimit.Decision {
			d := take(l, at, "a", cost)
			if d.OK {
				passed[at.Truncate(length)] += cost
			}
			return d
		}
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(length/3)).Draw(t, "pause")))
			cost := rapid.IntRange(1, quota).Draw(t, "cost")
			d := admit(now, cost)
			if d.Remaining < 0 || d.Remaining > quota {
				t.Fatalf("%+v of a quota of %d", d, quota)
			}
			if !d.OK {
				if early := take(l, now.Add(d.Wait-1), "a", cost); early.OK {
					t.Fatalf("told to wait %v, admitted before", d.Wait)
				}
				now = now.Add(d.Wait)
				if then := admit(now, cost); !then.OK {
					t.Fatalf("told to wait %v, then %+v", d.Wait, then)
				}
			}
		}
		for start, n := range passed {
			if n > quota {
				t.Fatalf("%d passed from %v, quota %d", n, start, quota)
			}
		}
	})
}

func TestUndoGivesTheQuotaBack(t *testing.T) {
	for name, counter := range map[string]httprate.LimitCounter{
		"own counter":     nil,
		"foreign counter": httprate.NewLocalLimitCounter(day),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := MustNew(Options{Quota: 2, Length: day, Counter: counter})
				d := take(l, midnight, "a", 2)
				if take(l, midnight, "a", 1).OK {
					t.Fatal("admitted beyond the quota")
				}
				d.Undo(midnight)
				synctest.Wait()
				if d := take(l, midnight, "a", 2); !d.OK {
					t.Errorf("after the undo: %+v", d)
				}
			})
		})
	}
}

func TestUndoAfterTheWindowMintsNothing(t *testing.T) {
	l := PerKey(2, day)
	d := take(l, midnight, "a", 2)
	later := midnight.Add(3 * day)
	take(l, later, "a", 1)
	d.Undo(later)
	if d := take(l, later, "a", 2); d.OK {
		t.Errorf("got %+v: an old grant bought a new request", d)
	}
}

func TestAClockThatGoesBackGivesNothing(t *testing.T) {
	l := PerKey(2, day)
	take(l, midnight.Add(day), "a", 2)
	for _, back := range []time.Duration{time.Second, day, 30 * day} {
		if d := take(l, midnight.Add(day-back), "a", 1); d.OK {
			t.Errorf("%v back: %+v", back, d)
		}
	}
}

func TestKeysAreBounded(t *testing.T) {
	l := MustNew(Options{Quota: 5, Length: day, MaxKeys: 100})
	admitted := 0
	for i := range 10_000 {
		if take(l, midnight, strconv.Itoa(i), 5).OK {
			admitted++
		}
	}
	if admitted != 101 {
		t.Errorf("%d admitted, want 100 with a count of their own and one sharing", admitted)
	}
	if s := l.Stats(); s.Keys > 101 || s.Overflow != 9900 {
		t.Errorf("%+v", s)
	}
	take(l, midnight.Add(3*day), "light", 1)
	if s := l.Stats(); s.Keys != 1 {
		t.Errorf("%+v after two empty days, want one key", s)
	}
}

func TestPlansHaveTheirOwnQuota(t *testing.T) {
	l := MustNew(Options{Quota: 1, Length: day, Plans: map[string]int{"pro": 3, "internal": Unlimited, "banned": 0}})
	for plan, want := range map[string]int{"": 1, "free": 1, "pro": 3, "banned": 0, "internal": 10} {
		passed := 0
		for range 10 {
			if l.Take(context.Background(), midnight, ratelimit.Key{ID: plan, Plan: plan}, 1, 0).OK {
				passed++
			}
		}
		if passed != want {
			t.Errorf("plan %q: %d passed, want %d", plan, passed, want)
		}
	}
	if !l.Policy(ratelimit.Key{Plan: "internal"}).Unlimited() {
		t.Error("the internal plan has a policy")
	}
}

func TestReloadKeepsTheCount(t *testing.T) {
	l := PerKey(3, day).Own(nil)
	take(l, midnight, "a", 3)
	l = PerKey(5, day).Own(l)
	if d := take(l, midnight, "a", 3); d.OK || d.Remaining != 2 {
		t.Errorf("got %+v, want 2 left of 5", d)
	}
	l = MustNew(Options{Quota: 5, Length: day, Name: "other"}).Own(l)
	if d := take(l, midnight, "a", 3); !d.OK {
		t.Errorf("another limit: %+v", d)
	}
}

func TestBadConfigurationNamesTheField(t *testing.T) {
	for field, o := range map[string]Options{
		"Quota is 0":      {Length: day},
		"Quota is -1":     {Quota: -1, Length: day},
		"Length is 0":     {Quota: 1},
		"Length is -1":    {Quota: 1, Length: -1},
		"Length is 1.5s":  {Quota: 1, Length: 1500 * time.Millisecond},
		"Length is 8808h": {Quota: 1, Length: 367 * day},
		"MaxKeys":         {Quota: 1, Length: day, MaxKeys: -1},
		"Timeout":         {Quota: 1, Length: day, Timeout: -1},
		"OnOutage":        {Quota: 1, Length: day, OnOutage: 9},
		`Plans: "pro"`:    {Quota: 1, Length: day, Plans: map[string]int{"pro": -1}},
		"Length or Each":  {Quota: 1, Length: day, Each: "day", Zone: time.UTC},
		`Each is "week"`:  {Quota: 1, Each: "week", Zone: time.UTC},
		"Zone is nil":     {Quota: 1, Each: "month"},
		"Zone is for":     {Quota: 1, Length: day, Zone: time.UTC},
	} {
		if l, err := New(o); l != nil || err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: New() = %v, %v", field, l, err)
		}
		l := build(o)
		if l.Validate() == nil || l.Own(PerKey(1, day)).Validate() == nil {
			t.Errorf("%s: Validate() says nothing", field)
		}
		if d := take(l, midnight, "a", 1); !d.Never {
			t.Errorf("%s: %+v, want nothing admitted", field, d)
		}
	}
}

func TestOptionsAreOnlyRead(t *testing.T) {
	o := Options{Quota: 1, Length: day, Plans: map[string]int{"pro": 2}}
	first, second := MustNew(o), MustNew(o)
	o.Plans["pro"] = 100
	key := ratelimit.Key{ID: "a", Plan: "pro"}
	for name, l := range map[string]*Limiter{"first": first, "second": second} {
		if d := l.Take(t.Context(), midnight, key, 2, 0); !d.OK || d.Remaining != 0 || d.Policy != "quota" {
			t.Errorf("%s: %+v, want the two that the plan had, under the default name", name, d)
		}
		if d := l.Take(t.Context(), midnight, key, 1, 0); d.OK {
			t.Errorf("%s: %+v beyond the quota", name, d)
		}
	}
}

// broken is a counter that hangs, fails or panics.
type broken struct {
	httprate.LimitCounter
	get func() error
}

func (b broken) Get(key string, now, before time.Time) (int, int, error) {
	if err := b.get(); err != nil {
		return 0, 0, err
	}
	return b.LimitCounter.Get(key, now, before)
}

func TestACounterThatIsAwayIsNoError(t *testing.T) {
	faults := map[string]func() error{
		"hangs":  func() error { time.Sleep(time.Minute); return nil },
		"fails":  func() error { return errors.New("away") },
		"panics": func() error { panic("away") },
	}
	for fault, get := range faults {
		for away, want := range map[ratelimit.Fail]struct {
			passed int
			source ratelimit.Source
		}{
			ratelimit.FailShare:  {3, ratelimit.SourceShare},
			ratelimit.FailOpen:   {10, ratelimit.SourceOpen},
			ratelimit.FailClosed: {0, ratelimit.SourceClosed},
		} {
			t.Run(fmt.Sprint(fault, " ", away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := broken{httprate.NewLocalLimitCounter(day), get}
					l := MustNew(Options{Quota: 3, Length: day, Counter: b, OnOutage: away, Timeout: 50 * time.Millisecond})
					start, passed := time.Now(), 0
					for range 10 {
						d := take(l, midnight, "a", 1)
						if d.Source != want.source || d.Never {
							t.Fatalf("got %+v, want source %v", d, want.source)
						}
						if d.OK {
							passed++
						} else if away == ratelimit.FailClosed && d.Wait != time.Second {
							t.Errorf("closed: wait %v, want a second", d.Wait)
						}
					}
					if passed != want.passed {
						t.Errorf("%d passed, want %d", passed, want.passed)
					}
					if took := time.Since(start); took > 50*time.Millisecond {
						t.Errorf("ten decisions took %v, want one time-out in all", took)
					}
					time.Sleep(2 * time.Minute)
				})
			})
		}
	}
}

func TestAForeignCounterIsAskedAgainAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := true
		b := broken{httprate.NewLocalLimitCounter(day), func() error {
			if away {
				return errors.New("away")
			}
			return nil
		}}
		l := MustNew(Options{Quota: 10, Length: day, Counter: b})
		if d := take(l, midnight, "a", 1); d.Source != ratelimit.SourceShare {
			t.Errorf("away: %+v", d)
		}
		away = false
		if d := take(l, midnight, "a", 1); d.Source != ratelimit.SourceShare {
			t.Errorf("at once: %+v, want it left alone", d)
		}
		time.Sleep(pause + 1)
		if d := take(l, midnight, "a", 1); d.Source != ratelimit.SourceDirect {
			t.Errorf("after a pause: %+v", d)
		}
	})
}

func TestRacingCallersOfAForeignCounterStayWithinTheQuota(t *testing.T) {
	l := MustNew(Options{Quota: 100, Length: day, Counter: httprate.NewLocalLimitCounter(day), Timeout: time.Minute})
	var group sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for range 8 {
		group.Go(func() {
			for range 50 {
				if take(l, midnight, "a", 1).OK {
					mu.Lock()
					passed++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if passed != 100 {
		t.Errorf("%d passed, want 100", passed)
	}
}

func TestStoreKeysAreInjectiveAndBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	keys := []ratelimit.Key{
		{Space: "a", ID: "b/c"}, {Space: "a/b", ID: "c"}, {Space: "", ID: "1:a/b"},
		{Space: "a", ID: long}, {Space: "a", ID: long + "y"}, {Space: "a", ID: text(ratelimit.Key{ID: long})[3:]},
	}
	seen := map[string]int{}
	for i, key := range keys {
		name := text(key)
		if j, ok := seen[name]; ok {
			t.Errorf("keys %d and %d are both %q", i, j, name)
		}
		if len(name) > 200 {
			t.Errorf("key %d has a name of %d bytes", i, len(name))
		}
		seen[name] = i
	}
}

func BenchmarkTake(b *testing.B) {
	l := PerKey(math.MaxInt32, day)
	b.ReportAllocs()
	for b.Loop() {
		take(l, midnight, "acme-key", 1)
	}
}
