package metrics

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

var testBounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// both returns a histogram of ours and the library's with the same buckets.
func both() (*histogram, prometheus.Histogram) {
	opts := prometheus.HistogramOpts{Name: "x", Buckets: testBounds, NativeHistogramBucketFactor: 1.1}
	theirs := prometheus.NewHistogram(opts)
	desc := prometheus.NewDesc("x", "", nil, nil)
	return newHistogram(newLayout(testBounds), desc, nil), theirs
}

func written(t *testing.T, m prometheus.Metric) *dto.Histogram {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	out.Histogram.CreatedTimestamp = nil
	return out.Histogram
}

// sameAs compares all but the sum, which is exact here and rounded there, and the
// width of the zero bucket, which for durations makes no difference.
func sameAs(t *testing.T, got, want *dto.Histogram) {
	t.Helper()
	if a, b := got.GetSampleSum(), want.GetSampleSum(); a-b > 1e-9*b || b-a > 1e-9*b {
		t.Errorf("sum %v, want %v", a, b)
	}
	got.SampleSum, want.SampleSum = nil, nil
	got.ZeroThreshold, want.ZeroThreshold = nil, nil
	if !proto.Equal(got, want) {
		t.Errorf("histogram %v\nwant      %v", got, want)
	}
}

func TestHistogramIsTheLibrarys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]func() time.Duration{
		"empty":    nil,
		"zero":     func() time.Duration { return 0 },
		"any size": func() time.Duration { return time.Duration(random.Uint64N(1 << random.IntN(47))) },
		"bounds": func() time.Duration {
			return time.Duration(testBounds[random.IntN(len(testBounds))]*1e9) + time.Duration(random.IntN(3)-1)
		},
		"doublings": func() time.Duration { return time.Second >> random.IntN(10) << random.IntN(10) },
		"two sizes": func() time.Duration { return []time.Duration{1100, 90 * time.Second}[random.IntN(2)] },
	}
	for name, next := range kinds {
		t.Run(name, func(t *testing.T) {
			ours, theirs := both()
			for range 5000 {
				if next != nil {
					d := next()
					ours.Record(d)
					theirs.Observe(d.Seconds())
				}
			}
			sameAs(t, written(t, ours), written(t, theirs))
		})
	}
}

func TestEveryDurationHasItsCell(t *testing.T) {
	l := newLayout(testBounds)
	for i, u := range l.upper[:len(l.upper)-1] {
		for _, d := range []uint64{u, u + 1} {
			want := i + int(d-u)
			if got := l.cell(time.Duration(d)); got != want {
				t.Fatalf("%d ns is in cell %d, want %d", d, got, want)
			}
		}
	}
	if got := l.cell(1<<63 - 1); got != len(l.upper)-1 {
		t.Errorf("the longest duration is in cell %d of %d", got, len(l.upper))
	}
	ours, _ := both()
	ours.Record(-time.Hour)
	if h := written(t, ours); h.GetZeroCount() != 1 || h.GetSampleSum() != 0 {
		t.Errorf("a negative duration: %v", h)
	}
}

func BenchmarkHistogram(b *testing.B) {
	ours, theirs := both()
	b.Run("ours", func(b *testing.B) {
		d := 80 * time.Microsecond
		for b.Loop() {
			ours.Record(d)
			d += 17
		}
	})
	b.Run("library", func(b *testing.B) {
		d := 80 * time.Microsecond
		for b.Loop() {
			theirs.Observe(d.Seconds())
			d += 17
		}
	})
}
