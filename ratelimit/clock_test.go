package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// aheads are how far ahead the clock of one request is in these tests.
var aheads = []time.Duration{10 * time.Minute, 24 * time.Hour, 10 * 365 * 24 * time.Hour}

// onceAhead makes one request with a clock that is ahead, and one with a clock that is
// right, and returns the limiter.
func onceAhead(opts ...Option) (limiters map[string]*Buckets) {
	limiters = map[string]*Buckets{}
	for _, ahead := range aheads {
		for _, when := range []string{"first", "later", "in the shared bucket"} {
			l := PerKey(rate.Every(time.Second), 3, opts...)
			switch when {
			case "later":
				takeN(l, epoch, "a", 2)
			case "in the shared bucket":
				l = PerKey(rate.Every(time.Second), 3, MaxKeys(1))
				takeN(l, epoch, "known", 1)
			}
			takeN(l, epoch.Add(ahead), "a", 1)
			takeN(l, epoch, "b", 1)
			limiters[fmt.Sprint(when, ", ", ahead)] = l
		}
	}
	return limiters
}

// One request that comes with a clock ahead does not hold its key until then.
//
// Case LI-02: tried on the product
func TestAClockThatWasAheadHoldsNoKey(t *testing.T) {
	for name, l := range onceAhead() {
		passed := 0
		for i := range 600 { // a minute
			if takeN(l, epoch.Add(time.Duration(i)*100*time.Millisecond), "a", 1).OK {
				passed++
			}
		}
		if passed < 59 || passed > 62+3 {
			t.Errorf("%s: %d passed in a minute, want one a second and a burst", name, passed)
		}
	}
}

// Nor does its bucket stay in memory until then.
func TestAClockThatWasAheadLeavesNoBucket(t *testing.T) {
	for name, l := range onceAhead() {
		for i := range 600 {
			takeN(l, epoch.Add(time.Duration(i)*time.Second), "light", 1)
		}
		if s := l.Stats(); s.Keys > 1 {
			t.Errorf("%s: %+v, want the light key alone", name, s)
		}
	}
}

// One wrong clock frees no other key: what a key owes it still owes.
func TestAClockThatIsWrongFreesNoOtherKey(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		l := PerKey(rate.Every(time.Minute), 3, MaxKeys(100))
		takeN(l, epoch, "limited", 3)
		for i := range 100 {
			now := epoch.Add(time.Duration(i) * 100 * time.Millisecond)
			takeN(l, now, "light", 1)
			takeN(l, now.Add(off), "wrong", 1)
			takeN(l, now, "light", 1)
		}
		if d := takeN(l, epoch.Add(10*time.Second), "limited", 1); d.OK || d.Wait != 50*time.Second {
			t.Errorf("off by %v: %+v, want refused for 50 s", off, d)
		}
	}
}

// What a bucket owes is never forgotten, by whatever it came to owe it.
func TestABucketThatOwesIsKept(t *testing.T) {
	for name, owe := range map[string]func(l Limiter){
		"a charge": func(l Limiter) { takeN(l, epoch, "owes", 1).Adjust(epoch, 3609) },
		"reservations": func(l Limiter) {
			for range 3610 {
				l.Take(context.Background(), epoch, Key{ID: "owes"}, 1, 2*time.Hour)
			}
		},
	} {
		l := PerKey(1, 10, MaxKeys(100))
		owe(l)
		for i := range 3600 {
			now := epoch.Add(time.Duration(i) * time.Second)
			takeN(l, now, "light-"+strconv.Itoa(i), 1)
			if d := l.Peek(now, Key{ID: "owes"}, 1, 0); d.OK || d.Wait != time.Duration(3601-i)*time.Second {
				t.Fatalf("%s: after %d s: %+v", name, i, d)
			}
		}
		if d := takeN(l, epoch.Add(3601*time.Second), "owes", 1); !d.OK || d.Remaining != 0 {
			t.Errorf("%s: when all is paid: %+v", name, d)
		}
	}
}

// A key at rest starts full under its next plan, whether or not other traffic made the
// table forget it meanwhile; one that is not at rest keeps its balance.
//
// Case LI-03: tried on the product
func TestAPlanChangedAtRestDoesNotDependOnTraffic(t *testing.T) {
	limiters := map[string]func() (l Limiter, next Key){
		"a table": func() (Limiter, Key) {
			return Tiers(Plan{Rate: 1, Burst: 2}, map[string]Plan{"big": {Rate: 1, Burst: 100}}), Key{ID: "a", Plan: "big"}
		},
		"a function": func() (Limiter, Key) {
			pick := func(k Key) Plan { return Plan{Rate: 1, Burst: 2 + 98*len(k.Plan)} }
			return TiersFunc(Plan{Rate: 1, Burst: 1}, pick), Key{ID: "a", Plan: "b"}
		},
	}
	for name, made := range limiters {
		for idle, want := range map[time.Duration]int{0: 0, time.Second: 0, 10 * time.Minute: 99} {
			for _, traffic := range []bool{false, true} {
				l, next := made()
				takeN(l, epoch, "a", 2)
				now := epoch
				for ; traffic && now.Before(epoch.Add(idle)); now = now.Add(100 * time.Millisecond) {
					takeN(l, now, "other", 1)
				}
				d := l.Take(context.Background(), epoch.Add(idle), next, 1, 0)
				if d.Remaining != want {
					t.Errorf("%s, %v idle, traffic %v: %+v, want %d left", name, idle, traffic, d, want)
				}
			}
		}
	}
}

// The same for a reload: the old numbers count until then, the new ones from then on.
func TestABurstRaisedAtRestDoesNotDependOnTraffic(t *testing.T) {
	for _, traffic := range []bool{false, true} {
		old := Own(PerKey(1, 2), nil)
		takeN(old, epoch, "a", 2)
		for i := range 6000 {
			if traffic {
				takeN(old, epoch.Add(time.Duration(i)*100*time.Millisecond), "other", 1)
			}
		}
		now := epoch.Add(10 * time.Minute)
		if d := takeN(Own(PerKey(1, 100), old), now, "a", 1); d.Remaining != 1 {
			t.Errorf("traffic %v: %+v, want 1 of the old burst left", traffic, d)
		}
	}
}

// Undo after changes of plan gives nothing back, however many there were: none may
// look like no change at all.
//
// Case LI-05: tried on the product
func TestNoNumberOfPlanChangesLooksLikeNone(t *testing.T) {
	for changes := 1; changes <= 1024; changes++ {
		for _, cost := range []int{1, 1000} { // granted, refused
			l := Tiers(Plan{Rate: 1e-9, Burst: 5000}, map[string]Plan{"b": {Rate: 1e-9, Burst: 5000}})
			plans := []string{"", "b"}
			d := takeN(l, epoch, "a", 500)
			left := 4500
			for i := range changes {
				d := l.Take(context.Background(), epoch, Key{ID: "a", Plan: plans[(i+1)%2]}, cost, 0)
				if d.OK {
					left -= cost
				}
			}
			d.Undo(epoch)
			if got := l.Peek(epoch, Key{ID: "a", Plan: plans[changes%2]}, 1, 0); got.Remaining != left-1 && left > 0 {
				t.Fatalf("%d changes: %d left, want %d", changes, got.Remaining, left-1)
			}
		}
	}
}

// A grant that is undone comes back also after many changes of plan, if none was since.
func TestManyPlanChangesDoNotEndUndo(t *testing.T) {
	l := Tiers(Plan{Rate: 1, Burst: 500}, map[string]Plan{"b": {Rate: 1, Burst: 500}})
	plans := []string{"", "b"}
	lost := 0
	for i := range 1000 {
		now := epoch.Add(time.Duration(i) * 10 * time.Second)
		k := Key{ID: "a", Plan: plans[i%2]}
		d := l.Take(context.Background(), now, k, 9, 0)
		d.Undo(now)
		if got := l.Peek(now, k, 1, 0); got.Remaining != 499 {
			lost++
		}
		l.Take(context.Background(), now, k, 1, 0)
	}
	if lost > 1000/128+1 {
		t.Errorf("%d of 1000 grants were lost", lost)
	}
}

// A bucket that was forgotten, while its key was on another plan, takes nothing back.
func TestAnOldGrantBuysNothingFromANewBucket(t *testing.T) {
	l := Tiers(Plan{Rate: rate.Every(time.Hour), Burst: 100}, map[string]Plan{"fast": {Rate: 1000, Burst: 1}}, MaxKeys(100))
	d := takeN(l, epoch, "a", 50)
	l.Take(context.Background(), epoch, Key{ID: "a", Plan: "fast"}, 1, 0)
	now := epoch
	for range 600 {
		now = now.Add(time.Second)
		l.Take(context.Background(), now, Key{ID: "light", Plan: "fast"}, 1, 0)
	}
	takeN(l, now, "a", 100)
	d.Undo(now)
	if d := takeN(l, now, "a", 1); d.OK {
		t.Errorf("got %+v", d)
	}
}
