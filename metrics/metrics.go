package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics/internal/measure"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
)

// Metrics shows gates, transports, work queues and shared limits to Prometheus. It
// is an [admission.Observer] and a [prometheus.Collector]. All methods are safe for
// concurrent use. See the package comment for the metrics and what they cost.
type Metrics struct {
	observer *measure.Observer
	vectors  vectors
	gauges   map[*measure.Family]*prometheus.Desc
}

// New returns a Metrics registered with reg. For a registerer that has one already
// it returns that one, so that gates built in different places share it. A nil reg
// registers nothing: the result may be registered by hand.
//
// It panics when reg refuses, which it does when somebody else registered one of
// the names.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{vectors: newVectors(), gauges: map[*measure.Family]*prometheus.Desc{}}
	m.observer = measure.New(m.vectors)
	for _, f := range measure.Families() {
		if !f.Told {
			m.gauges[f] = prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
		}
	}
	if reg == nil {
		return m
	}
	err := reg.Register(m)
	if known := (prometheus.AlreadyRegisteredError{}); errors.As(err, &known) {
		if other, ok := known.ExistingCollector.(*Metrics); ok {
			return other
		}
	}
	if err != nil {
		panic(fmt.Sprintf("metrics: New: %v", err))
	}
	return m
}

// Observe counts one visit. It allocates nothing.
func (m *Metrics) Observe(e admission.Event) { m.observer.Observe(e) }

// Attach adds a gate; a gate does it itself when it is built. Gates of the same
// name are shown as one, their figures summed. An attached gate is kept for as long
// as the Metrics is.
func (m *Metrics) Attach(gate string, snapshot func() admission.Stats) {
	m.observer.Attach(gate, snapshot)
}

// Outbound returns the observer for outbound.Options.Observer. One serves any number
// of transports.
func (m *Metrics) Outbound() outbound.Observer { return m.observer.Outbound() }

// Queue shows a work queue, a *queue.Queue of anything, under the given name. A
// second queue of the same name takes the place of the first.
func (m *Metrics) Queue(name string, q measure.Work) { m.observer.Queue(name, q) }

// Store shows a limiter that is shared through a store. Those that a gate was given
// are shown without it. Limiters of one name are shown once.
func (m *Metrics) Store(s ratelimit.Stored) { m.observer.Store(s) }

// ShowCallers turns on the family headgate_callers, which is off until then: what those
// callers had that had most, by the alias that the service gave or a digest, never by key.
// It has at most 21 aliases of a gate, four series each; they come and go with the callers.
func (m *Metrics) ShowCallers() { m.observer.ShowCallers() }

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, v := range m.vectors {
		v.Describe(to)
	}
	for _, d := range m.gauges {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	m.observer.Read(func(f *measure.Family, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(m.gauges[f], valueType(f), value, valid(labels)...)
	})
	for _, v := range m.vectors {
		v.Collect(to)
	}
}

func valueType(f *measure.Family) prometheus.ValueType {
	if f.Kind == measure.Counter {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

var (
	_ admission.Observer   = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)
