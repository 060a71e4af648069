package entry_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/entry"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

var meterStart = time.Unix(1e9, 0)

// serve feeds the meter with slots that come free with exponential gaps, at the
// given rate, for so long, and returns the time it is then.
func serve(m *entry.Meter, r *rand.Rand, now time.Time, rate float64, d time.Duration) time.Time {
	for end := now.Add(d); now.Before(end); {
		gap := time.Duration(r.ExpFloat64() / rate * float64(time.Second))
		now = now.Add(gap)
		m.Freed(now, gap)
	}
	return now
}

func TestMeterFindsTheRateWithinAFewCompletions(t *testing.T) {
	for _, rate := range []float64{4, 178, 4000} {
		r := rand.New(rand.NewPCG(1, 1))
		var m entry.Meter
		now := serve(&m, r, meterStart, 50, 10*time.Second)
		now = serve(&m, r, now, rate, max(time.Second, time.Duration(40/rate*float64(time.Second))))
		var logSum float64
		const n = 200
		for range n { // a single reading scatters; its middle must not
			now = serve(&m, r, now, rate, time.Duration(8/rate*float64(time.Second)))
			got, ok := m.Rate(now, 0)
			if !ok {
				t.Fatalf("%v/s: no evidence", rate)
			}
			logSum += math.Log(got / rate)
		}
		if off := math.Exp(logSum / n); off < 0.75 || off > 1.34 {
			t.Errorf("%v/s: reads %.2f of it in the mean", rate, off)
		}
	}
}

func TestMeterHearsSilence(t *testing.T) {
	var m entry.Meter
	now := serve(&m, rand.New(rand.NewPCG(1, 1)), meterStart, 1000, time.Second)
	before, _ := m.Rate(now, 0)
	after, ok := m.Rate(now.Add(time.Second), time.Second)
	if !ok || before < 500 || after > 40 {
		t.Errorf("%v/s, after a second of nothing %v/s", before, after)
	}
}

func TestMeterHasNoEvidenceAtFirstAndForgetsIt(t *testing.T) {
	var m entry.Meter
	check := func(when string, now time.Time, want bool) {
		t.Helper()
		if _, ok := m.Rate(now, 0); ok != want {
			t.Errorf("%s: rate known = %v", when, ok)
		}
		if _, ok := m.Service(now, priority.Normal); ok != want {
			t.Errorf("%s: service known = %v", when, ok)
		}
	}
	now := meterStart
	feed := func() {
		now = now.Add(10 * time.Millisecond)
		m.Freed(now, 10*time.Millisecond)
		m.Done(now, priority.Normal, 50*time.Millisecond, 1, shed.Served)
	}
	check("at first", now, false)
	for range 3 {
		feed()
	}
	check("after three", now, false)
	feed()
	check("after four", now, true)
	check("ten seconds later", now.Add(10*time.Second), true)
	check("eleven seconds later", now.Add(11*time.Second), false)
	now = now.Add(time.Hour)
	feed()
	check("after one more", now, false)
}

func TestMeterReadsMediansPerLevelAndOnlyOfWorkThatTellsSomething(t *testing.T) {
	var m entry.Meter
	r := rand.New(rand.NewPCG(3, 3))
	now := meterStart
	for range 200 {
		now = now.Add(time.Millisecond)
		m.Done(now, priority.Batch, time.Duration(4000+r.IntN(2000))*time.Millisecond, 1, shed.Served)
		m.Done(now, priority.Critical, time.Duration(8+r.IntN(5))*time.Millisecond, 1, shed.TimedOut)
		m.Done(now, priority.Critical, 0, 1, shed.Failed)
		m.Done(now, priority.Critical, time.Hour, 1, shed.Ignored)
	}
	if d, _ := m.Service(now, priority.Batch); d < 4500*time.Millisecond || d > 5500*time.Millisecond {
		t.Errorf("batch: %v", d)
	}
	if d, _ := m.Service(now, priority.Critical); d < 9*time.Millisecond || d > 11*time.Millisecond {
		t.Errorf("critical: %v", d)
	}
	if _, ok := m.Service(now, priority.Normal); ok {
		t.Error("normal is known without evidence")
	}
}

// The running median must be that of the last 15, for any numbers.
func FuzzMeterMedian(f *testing.F) {
	f.Add([]byte{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4})
	f.Fuzz(func(t *testing.T, values []byte) {
		var m entry.Meter
		for i, v := range values {
			m.Done(meterStart, priority.Normal, time.Duration(v), 1, shed.Served)
			last := values[max(0, i-14) : i+1]
			got, _ := m.Service(meterStart, priority.Normal)
			below, notAbove := 0, 0
			for _, x := range last {
				if time.Duration(x) < got {
					below++
				}
				if time.Duration(x) <= got {
					notAbove++
				}
			}
			if rank := (len(last) - 1) / 2; below > rank || notAbove <= rank {
				t.Fatalf("median %d of %v", got, last)
			}
		}
	})
}

func TestAMedianThatProvesWrongIsNotUsed(t *testing.T) {
	var m entry.Meter
	now := meterStart
	for range 20 {
		m.Done(now, priority.Normal, 5*time.Second, 1, shed.Served)
	}
	if !m.Doubtful(now, priority.Normal, 1, time.Second) || m.Needs(now, priority.Normal, 1) != 5*time.Second {
		t.Fatal("the median says nothing")
	}
	for i := range 3 {
		if !m.Try(priority.Normal) {
			t.Fatalf("try %d refused", i)
		}
		if m.Try(priority.Normal) {
			t.Fatalf("two tries at once while the median is trusted")
		}
		m.Tried(priority.Normal, true)
	}
	if m.Needs(now, priority.Normal, 1) != 0 {
		t.Fatal("three of three in time, and the median is still believed")
	}
	for range 2 {
		if !m.Try(priority.Normal) {
			t.Fatal("not everybody may try although the median is not believed")
		}
	}
	m.Tried(priority.Normal, false)
	m.Untried(priority.Normal)
	if m.Needs(now, priority.Normal, 1) == 0 {
		t.Fatal("a failure, and the median is still not believed")
	}
}
