// Package otel shows the kit to OpenTelemetry, under the names and with the labels
// that package metrics documents. It is a module of its own, so that who uses
// Prometheus does not inherit the OpenTelemetry API, nor the other way round.
//
//	m, err := otel.New(otel.Meter("headgate"))
//	gate := admission.MustNew(admission.Options{Observer: m})
//
// Names are kept as they are, units included. An exporter that adds suffixes by
// itself, as the Prometheus exporter does, should be told not to, or names will
// read headgate_requests_total_total.
package otel

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics/internal/measure"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
)

// Metrics shows gates, transports, work queues and shared limits to OpenTelemetry.
// It is an [admission.Observer]. All methods are safe for concurrent use. An
// admitted request costs three instrument calls, with attributes that were put
// together beforehand.
type Metrics struct {
	observer     *measure.Observer
	registration metric.Registration
}

// New builds a Metrics whose instruments are m's. Use one for each meter: a second
// one would show everything again. The error is the meter's.
func New(m metric.Meter) (*Metrics, error) {
	told, err := newTold(m)
	if err != nil {
		return nil, fmt.Errorf("otel: New: %w", err)
	}
	o := &Metrics{observer: measure.New(told)}
	shown, all, err := newShown(m)
	if err != nil {
		return nil, fmt.Errorf("otel: New: %w", err)
	}
	o.registration, err = m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		o.observer.Read(func(f *measure.Family, value float64, labels ...string) {
			to.ObserveFloat64(shown[f], value, metric.WithAttributeSet(attributes(f, labels)))
		})
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("otel: New: %w", err)
	}
	return o, nil
}

// Observe counts one visit.
func (o *Metrics) Observe(e admission.Event) { o.observer.Observe(e) }

// Attach adds a gate; a gate does it itself when it is built. Gates of the same
// name are shown as one, their figures summed.
func (o *Metrics) Attach(gate string, snapshot func() admission.Stats) {
	o.observer.Attach(gate, snapshot)
}

// Outbound returns the observer for outbound.Options.Observer. One serves any number
// of transports.
func (o *Metrics) Outbound() outbound.Observer { return o.observer.Outbound() }

// Queue shows a work queue under the given name, in place of one that had it.
func (o *Metrics) Queue(name string, q measure.Work) { o.observer.Queue(name, q) }

// Store shows a limiter that is shared through a store. Those that a gate was given
// are shown without it.
func (o *Metrics) Store(s ratelimit.Stored) { o.observer.Store(s) }

// ShowCallers turns on the family of callers; see metrics.Metrics.
func (o *Metrics) ShowCallers() { o.observer.ShowCallers() }

// Close stops showing gauges. Counters stay with their meter.
func (o *Metrics) Close() error { return o.registration.Unregister() }

func newShown(m metric.Meter) (map[*measure.Family]metric.Float64Observable, []metric.Observable, error) {
	byFamily, all := map[*measure.Family]metric.Float64Observable{}, []metric.Observable(nil)
	var errs []error
	for _, f := range measure.Families() {
		var instrument metric.Float64Observable
		var err error
		switch {
		case f.Told:
			continue
		case f.Kind == measure.Counter:
			instrument, err = m.Float64ObservableCounter(f.Name, metric.WithDescription(f.Help), metric.WithUnit(unit(f)))
		default:
			instrument, err = m.Float64ObservableGauge(f.Name, metric.WithDescription(f.Help), metric.WithUnit(unit(f)))
		}
		errs = append(errs, err)
		byFamily[f] = instrument
		all = append(all, instrument)
	}
	return byFamily, all, errors.Join(errs...)
}

var _ admission.Observer = (*Metrics)(nil)
