package metrics

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// histogram is one series of a native histogram with classic buckets beside it, for
// durations. The library's own does the same for any number, and grows its buckets
// in a map; knowing the range of a duration beforehand, two additions are enough,
// which is what an admitted request can afford (BenchmarkHistogram).
//
// Every count goes to one cell, the intersection of a native and a classic bucket,
// so that both are right at every scrape.
type histogram struct {
	layout *layout
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	began  time.Time

	cells []atomic.Uint64
	sum   atomic.Int64 // nanoseconds
}

func newHistogram(l *layout, desc *prometheus.Desc, values []string) *histogram {
	return &histogram{
		layout: l, desc: desc, labels: prometheus.MakeLabelPairs(desc, values), began: time.Now(),
		cells: make([]atomic.Uint64, len(l.upper)),
	}
}

// Record adds one duration. Negative ones count as zero.
func (h *histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.cells[h.layout.cell(d)].Add(1)
	h.sum.Add(int64(d))
}

// Desc implements [prometheus.Metric].
func (h *histogram) Desc() *prometheus.Desc { return h.desc }

// Write implements [prometheus.Metric].
func (h *histogram) Write(out *dto.Metric) error {
	counts := make([]uint64, len(h.cells))
	for i := range h.cells {
		counts[i] = h.cells[i].Load()
	}
	his := &dto.Histogram{
		SampleSum:        new(float64(h.sum.Load()) / float64(time.Second)),
		CreatedTimestamp: timestamppb.New(h.began),
		Schema:           new(int32(nativeSchema)),
		ZeroThreshold:    new(math.SmallestNonzeroFloat64),
		ZeroCount:        new(counts[0]),
	}
	his.SampleCount, his.Bucket = h.layout.classicBuckets(counts)
	his.PositiveSpan, his.PositiveDelta = h.layout.nativeBuckets(counts)
	out.Label, out.Histogram = h.labels, his
	return nil
}
