package pressure_test

import (
	"database/sql"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
	"github.com/headgate-go/headgate/shed/pressure"
)

func gauge(t *testing.T, p pressure.Guard) shed.Gauge {
	t.Helper()
	g, err := p.New()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPressureShedsLowestFirstAndNeverCritical(t *testing.T) {
	value := 0.5
	g := gauge(t, pressure.Guard{Signals: []pressure.Signal{{Read: func() float64 { return value }, High: 0.85, Low: 0.80}}})
	start := time.Unix(1e9, 0)
	for _, step := range []struct {
		after time.Duration
		value float64
		want  priority.Level
	}{
		{0, 0.5, priority.Batch},
		{200 * time.Millisecond, 0.9, priority.Normal},
		{400 * time.Millisecond, 0.9, priority.Normal}, // one step a second
		{1300 * time.Millisecond, 0.9, priority.High},
		{2400 * time.Millisecond, 0.9, priority.Critical},
		{9 * time.Second, 0.9, priority.Critical},
		{10 * time.Second, 0.82, priority.Critical}, // between low and high nothing changes
		{11 * time.Second, 0.79, priority.High},
		{11200 * time.Millisecond, 0.79, priority.High},
		{12100 * time.Millisecond, 0.5, priority.Normal},
		{13200 * time.Millisecond, math.NaN(), priority.Batch}, // no news: low it stays
	} {
		value = step.value
		if got := g.Lowest(start.Add(step.after)); got != step.want {
			t.Fatalf("after %v at %v: lowest %v, want %v", step.after, step.value, got, step.want)
		}
	}
	if g.Sheds(start.Add(14*time.Second), priority.Critical, "") {
		t.Error("critical was shed")
	}
}

func TestPressureReadsNoMoreOftenThanItSays(t *testing.T) {
	reads := 0
	g := gauge(t, pressure.Guard{Signals: []pressure.Signal{{Read: func() float64 { reads++; return 0 }, High: 1}}})
	for i := range 1000 {
		g.Lowest(time.Unix(1e9, int64(i)*1e6))
	}
	if reads != 10 {
		t.Errorf("read %d times in a second, want 10", reads)
	}
}

func TestPressureWithoutSignalsTurnsNoWorkAway(t *testing.T) {
	g := gauge(t, pressure.Guard{})
	if g.Sheds(time.Unix(1e9, 0), priority.Batch, "x") || g.Lowest(time.Unix(1e9, 0)) != priority.Batch {
		t.Error("somebody was shed")
	}
}

func TestPressureCohortsAreSharesThatMoveEveryHour(t *testing.T) {
	g := gauge(t, pressure.Guard{Cohort: 0.25, Signals: []pressure.Signal{{Read: func() float64 { return 1 }, High: 1}}})
	at := time.Unix(3600*1000, 0)
	out := func(now time.Time) map[string]bool {
		m := make(map[string]bool)
		for i := range 4000 {
			if name := fmt.Sprint("caller-", i); g.Sheds(now, priority.Batch, name) {
				m[name] = true
			}
		}
		return m
	}
	first := out(at)
	if n := len(first); n < 900 || n > 1100 {
		t.Fatalf("%d of 4000 callers are out, want about a quarter", n)
	}
	again := gauge(t, pressure.Guard{Cohort: 0.25, Signals: []pressure.Signal{{Read: func() float64 { return 1 }, High: 1}}})
	g = again
	later := out(at.Add(time.Hour))
	both := 0
	for name := range later {
		if first[name] {
			both++
		}
	}
	if both > len(later)/2 {
		t.Errorf("%d of %d callers are out an hour later too", both, len(later))
	}
}

func TestPressureIsSafeForConcurrentUse(t *testing.T) {
	inside := 0 // unguarded: the race detector watches that nobody reads twice at a time
	g := gauge(t, pressure.Guard{Every: time.Nanosecond, Signals: []pressure.Signal{{Read: func() float64 { inside++; return 1 }, High: 1}}})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 1000 {
				g.Sheds(time.Unix(1e9, int64(i)), priority.Batch, "")
			}
		})
	}
	all.Wait()
	if inside == 0 {
		t.Error("nobody read the signal")
	}
}

func TestPressureNamesTheBadField(t *testing.T) {
	read := func() float64 { return 0 }
	for want, p := range map[string]pressure.Guard{
		"Every":             {Every: -1},
		"Hold":              {Hold: -1},
		"Cohort":            {Cohort: math.NaN()},
		"Signals[0] (\"a\"": {Signals: []pressure.Signal{{Name: "a", High: 1}}},
		"Signals[0] (\"b\"": {Signals: []pressure.Signal{{Name: "b", Read: read}}},
		"Signals[1]":        {Signals: []pressure.Signal{{Read: read, High: 1}, {Read: read, High: 1, Low: 2}}},
	} {
		if _, err := p.New(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v does not name %s", p, err, want)
		}
	}
}

func TestReadySignalsReadSomethingSensible(t *testing.T) {
	if v := pressure.Heap().Read(); !(v >= 0 && v < 1) {
		t.Errorf("heap %v", v)
	}
	s := pressure.SchedulerLatency()
	s.Read()
	if v := s.Read(); v < 0 || v > 10 {
		t.Errorf("scheduler latency %v s", v)
	}
	var stats sql.DBStats
	pool := pressure.PoolWait(func() sql.DBStats { return stats }, 0)
	if v := pool.Read(); v != 0 {
		t.Errorf("pool wait %v without a wait", v)
	}
	stats.WaitCount, stats.WaitDuration = 4, 400*time.Millisecond
	if v := pool.Read(); v != 0.1 {
		t.Errorf("pool wait %v, want 0.1 s", v)
	}
	if v := pressure.Depth(func() int { return 7 }, 10).Read(); v != 7 {
		t.Errorf("depth %v", v)
	}
}
