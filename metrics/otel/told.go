package otel

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/headgate-go/headgate/metrics/internal/measure"
)

// told are the instruments that count as things happen.
type told struct {
	counters   map[*measure.Family]metric.Int64Counter
	histograms map[*measure.Family]metric.Float64Histogram
}

func newTold(m metric.Meter) (told, error) {
	t := told{map[*measure.Family]metric.Int64Counter{}, map[*measure.Family]metric.Float64Histogram{}}
	var errs []error
	for _, f := range measure.Families() {
		var err error
		switch {
		case !f.Told:
			continue
		case f.Kind == measure.Histogram:
			t.histograms[f], err = m.Float64Histogram(f.Name, metric.WithDescription(f.Help),
				metric.WithUnit(unit(f)), metric.WithExplicitBucketBoundaries(f.Bounds...))
		default:
			t.counters[f], err = m.Int64Counter(f.Name, metric.WithDescription(f.Help), metric.WithUnit(unit(f)))
		}
		errs = append(errs, err)
	}
	return t, errors.Join(errs...)
}

// Counter returns one series, shown as zero from now on.
func (t told) Counter(f *measure.Family, labels ...string) measure.Incrementer {
	c := counter{t.counters[f], []metric.AddOption{metric.WithAttributeSet(attributes(f, labels))}}
	c.Int64Counter.Add(background, 0, c.options...)
	return c
}

// Histogram returns one series.
func (t told) Histogram(f *measure.Family, labels ...string) measure.Recorder {
	return histogram{t.histograms[f], []metric.RecordOption{metric.WithAttributeSet(attributes(f, labels))}}
}

// Events carry no context: there is no span to link a sample to.
var background = context.Background()

type counter struct {
	metric.Int64Counter
	options []metric.AddOption
}

// Inc adds one.
func (c counter) Inc() { c.Int64Counter.Add(background, 1, c.options...) }

type histogram struct {
	instrument metric.Float64Histogram
	options    []metric.RecordOption
}

// Record adds one duration.
func (h histogram) Record(d time.Duration) {
	h.instrument.Record(background, max(d.Seconds(), 0), h.options...)
}

// attributes leaves out labels without a value, as Prometheus does.
func attributes(f *measure.Family, values []string) attribute.Set {
	var kvs []attribute.KeyValue
	for i, v := range values {
		if v != "" {
			kvs = append(kvs, attribute.String(f.Labels[i], strings.ToValidUTF8(v, "\uFFFD")))
		}
	}
	return attribute.NewSet(kvs...)
}

func unit(f *measure.Family) string {
	name := strings.TrimSuffix(f.Name, "_total")
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return "s"
	case strings.HasSuffix(name, "_bytes"):
		return "By"
	case strings.HasSuffix(name, "_per_second"), strings.HasSuffix(name, "_rate"):
		return "1/s"
	}
	return "1"
}
