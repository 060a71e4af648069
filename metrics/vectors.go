package metrics

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-go/headgate/metrics/internal/measure"
)

// vectors are the families that are counted as things happen.
type vectors map[*measure.Family]prometheus.Collector

func newVectors() vectors {
	vs := vectors{}
	for _, f := range measure.Families() {
		switch {
		case !f.Told:
		case f.Kind == measure.Histogram:
			vs[f] = newHistogramVector(f)
		default:
			vs[f] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: f.Name, Help: f.Help}, f.Labels)
		}
	}
	return vs
}

// Counter returns the series of a counter.
func (vs vectors) Counter(f *measure.Family, labels ...string) measure.Incrementer {
	return vs[f].(*prometheus.CounterVec).WithLabelValues(valid(labels)...)
}

// Histogram returns the series of a histogram.
func (vs vectors) Histogram(f *measure.Family, labels ...string) measure.Recorder {
	return vs[f].(*histogramVector).with(valid(labels))
}

// histogramVector is all series of one histogram.
type histogramVector struct {
	layout *layout
	desc   *prometheus.Desc

	mu     sync.Mutex
	series map[string]*histogram
}

func newHistogramVector(f *measure.Family) *histogramVector {
	return &histogramVector{
		layout: newLayout(f.Bounds),
		desc:   prometheus.NewDesc(f.Name, f.Help, f.Labels, nil),
		series: map[string]*histogram{},
	}
}

func (v *histogramVector) with(labels []string) *histogram {
	key := strings.Join(labels, "\xff") // not in valid text
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.series[key]
	if h == nil {
		h = newHistogram(v.layout, v.desc, labels)
		v.series[key] = h
	}
	return h
}

// Describe implements [prometheus.Collector].
func (v *histogramVector) Describe(to chan<- *prometheus.Desc) { to <- v.desc }

// Collect implements [prometheus.Collector].
func (v *histogramVector) Collect(to chan<- prometheus.Metric) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, h := range v.series {
		to <- h
	}
}

// valid returns labels that Prometheus takes: names are the service's own, and it
// may have called a gate anything.
func valid(labels []string) []string {
	for i, l := range labels {
		if !utf8.ValidString(l) {
			labels = slices.Clone(labels)
			labels[i] = strings.ToValidUTF8(l, "\uFFFD")
		}
	}
	return labels
}

var _ measure.Instruments = vectors(nil)
