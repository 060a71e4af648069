package traffic

import (
	"cmp"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/headgate-go/headgate/internal/size/accesslog"
)

var noon = time.Unix(1_772_452_800, 0)

func request(end time.Duration, took time.Duration, route, caller string) *accesslog.Request {
	return &accesslog.Request{Stamp: noon.Add(end), AtEnd: true, Timed: true, Took: took, Route: route, Caller: caller, Status: 200}
}

func collect(records *[]Record) func(Record) error {
	return func(r Record) error { *records = append(*records, r); return nil }
}

func TestStreamIsInOrderOfArrival(t *testing.T) {
	var got []Record
	s := NewStream(8, nil, collect(&got))
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 500 { // up to five requests overtake each other, fewer than the window
		if err := s.Add(request(time.Duration(i)*time.Second, time.Duration(rng.IntN(5))*time.Second, "GET /", "a")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 500 || s.Late != 0 || !slices.IsSortedFunc(got, func(a, b Record) int { return cmp.Compare(a.Arrived, b.Arrived) }) {
		t.Errorf("%d records, %d late, or not sorted", len(got), s.Late)
	}
}

func TestWhatTheWindowCannotMendIsCounted(t *testing.T) {
	var got []Record
	s := NewStream(2, nil, collect(&got))
	for _, end := range []time.Duration{10, 11, 12, 13, 1} {
		_ = s.Add(request(end*time.Second, 0, "GET /", "a"))
	}
	_ = s.Flush()
	if len(got) != 5 || s.Late != 1 || got[2].Arrived < got[1].Arrived {
		t.Errorf("late %d: %v", s.Late, got)
	}
}

func TestCoarseStampsAreSpreadOverTheirSecond(t *testing.T) {
	var got []Record
	s := NewStream(1000, nil, collect(&got))
	for range 1000 {
		r := request(0, 0, "GET /", "a")
		r.Coarse = true
		_ = s.Add(r)
	}
	_ = s.Flush()
	tenths := map[time.Duration]int{}
	for _, r := range got {
		tenths[(r.Arrived-time.Duration(noon.UnixNano()))/(100*time.Millisecond)]++
	}
	for i := range time.Duration(10) {
		if n := tenths[i]; n < 60 || n > 140 {
			t.Errorf("%d arrivals in tenth %d, want about 100", n, i)
		}
	}
}

func TestTablesOfNamesAreBounded(t *testing.T) {
	s := NewStream(4, nil, func(Record) error { return nil })
	for i := range MostCallers + 1000 {
		name := strconv.Itoa(i)
		_ = s.Add(request(0, 0, "GET /"+name, name))
	}
	if len(s.Routes()) != MostRoutes || len(s.callers) != MostCallers {
		t.Errorf("%d routes, %d callers", len(s.Routes()), len(s.callers))
	}
	if s.Routes()[0] != Other || s.CallerName(1) == "" {
		t.Error("what is not remembered has no name")
	}
}

func TestMissingTimesAreDrawnFromWhatIsAssumed(t *testing.T) {
	l := NewLatency(30*time.Millisecond, 120*time.Millisecond)
	var h Histogram
	s := NewStream(4, &l, func(r Record) error {
		if !r.Timed {
			t.Error("untimed")
		}
		h.Add(r.Took)
		return nil
	})
	for range 20_000 {
		r := request(0, 0, "GET /", "a")
		r.Timed = false
		_ = s.Add(r)
	}
	_ = s.Flush()
	near(t, "p50", h.Quantile(0.5), 30*time.Millisecond, 0.06)
	near(t, "p99", h.Quantile(0.99), 120*time.Millisecond, 0.1)
	near(t, "mean", h.Mean(), l.Mean(), 0.03)
}

func near(t *testing.T, what string, got, want time.Duration, part float64) {
	t.Helper()
	if math.Abs(float64(got-want)) > part*float64(want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestQuantilesAreWithinABucket(t *testing.T) {
	var h Histogram
	var all []time.Duration
	rng := rand.New(rand.NewPCG(3, 3))
	for range 5000 {
		d := time.Duration(math.Exp(rng.Float64()*20)) * time.Microsecond / 50
		h.Add(d)
		all = append(all, d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99, 1} {
		want := max(all[int(math.Ceil(q*5000))-1], histogramLeast)
		near(t, "quantile", h.Quantile(q), want, 0.05)
	}
}

// TestLittlesLaw: ten requests a second of 400 ms each are four in flight.
func TestLittlesLaw(t *testing.T) {
	m := NewMeasure()
	for i := range 1001 {
		m.Add(Record{Arrived: time.Duration(noon.UnixNano()) + time.Duration(i)*100*time.Millisecond, Took: 400 * time.Millisecond, Timed: true, Caller: uint64(i % 2)})
	}
	if c := m.Concurrency(&m.All); math.Abs(c-4) > 0.01 {
		t.Errorf("λ·W = %.3f, want 4", c)
	}
	if r := m.Rate(&m.All); math.Abs(r-10) > 0.02 {
		t.Errorf("rate %.2f, want 10", r)
	}
	if m.All.Peak != 4 || m.All.Busiest != 10 || m.Routes[0].Peak != 4 {
		t.Errorf("peak %d, busiest second %d", m.All.Peak, m.All.Busiest)
	}
	if minute, second := m.CallerQuantile(0.99); m.Callers() != 2 || minute != 300 || second != 5 {
		t.Errorf("%d callers, %d a minute, %d a second", m.Callers(), minute, second)
	}
}

func TestSpoolGivesBackWhatItWasGiven(t *testing.T) {
	s, err := NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{Arrived: 1, Took: 2, Caller: 1<<64 - 1, Route: 511, Status: 599, Timed: true},
		{Arrived: 1 << 62},
	}
	for _, r := range want {
		if err := s.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // it can be read again
		var got []Record
		if err := s.Each(func(r Record) { got = append(got, r) }); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v", got, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.file.Name()); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}
