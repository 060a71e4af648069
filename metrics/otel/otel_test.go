package otel_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics/internal/measure"
	"github.com/headgate-go/headgate/metrics/otel"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func collect(t testing.TB, reader *sdk.ManualReader) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	byName := map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

func newMetrics(t testing.TB) (*otel.Metrics, *sdk.ManualReader) {
	t.Helper()
	reader := sdk.NewManualReader()
	m, err := otel.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("headgate"))
	if err != nil {
		t.Fatal(err)
	}
	return m, reader
}

// sum adds up the points that have the attribute.
func sum(m metricdata.Metrics, key, value string) (n float64) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			if v, _ := p.Attributes.Value(attribute.Key(key)); v.AsString() == value {
				n += float64(p.Value)
			}
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			if v, _ := p.Attributes.Value(attribute.Key(key)); v.AsString() == value {
				n += p.Value
			}
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			if v, _ := p.Attributes.Value(attribute.Key(key)); v.AsString() == value {
				n += float64(p.Count)
			}
		}
	}
	return n
}

func TestAGateIsShown(t *testing.T) {
	m, reader := newMetrics(t)
	gate := admission.MustNew(admission.Options{Name: "edge", Pool: admission.Pool{Limit: shed.Fixed(7)}, Rate: ratelimit.PerKey(1, 2), Observer: m})
	h := gate.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 3 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	got := collect(t, reader)
	for _, want := range []struct {
		name, key, value string
		n                float64
	}{
		{"headgate_requests_total", "outcome", "served", 2},
		{"headgate_requests_total", "reason", "rate-limited", 1},
		{"headgate_service_seconds", "gate", "edge", 2},
		{"headgate_retry_after_seconds", "status", "429", 1},
		{"headgate_limit", "gate", "edge", 7},
		{"headgate_rate_burst", "limit", "rate", 2},
	} {
		if n := sum(got[want.name], want.key, want.value); n != want.n {
			t.Errorf("%s{%s=%s} = %v, want %v", want.name, want.key, want.value, n, want.n)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, still := collect(t, reader)["headgate_limit"]; still {
		t.Error("gauges are still shown after Close")
	}
}

// Every family of the kit comes out under its own name and with the right shape.
func TestNamesAreThoseOfThePrometheusMetrics(t *testing.T) {
	m, reader := newMetrics(t)
	m.ShowCallers()
	gate := admission.MustNew(admission.Options{Name: "edge", Pool: admission.Pool{Limit: shed.Throughput{}}, Rate: ratelimit.PerKey(1, 1), Observer: m})
	gate.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) // routes are shown once they were met
	m.Outbound().Attach("billing", func() pacer.Stats {
		return pacer.Stats{Operations: []pacer.OperationStats{{RetryLeft: 1}}}
	})
	m.Store(away{})
	q, err := queue.NewQueue(queue.WorkConfig[int]{})
	if err != nil {
		t.Fatal(err)
	}
	m.Queue("mail", q)
	m.Observe(admission.Event{Gate: "edge", Waited: time.Second, Served: time.Second})
	m.Observe(admission.Event{Gate: "edge", Reason: shed.QueueFull})
	m.Outbound().Observe(outbound.Event{Transport: "billing"})
	got := collect(t, reader)
	for _, f := range measure.Families() {
		data, there := got[f.Name]
		if f == measure.Shadowed && !there {
			continue // shown once something was
		}
		if kind := kindOf(data); kind != f.Kind {
			t.Errorf("%s is %T, want kind %v", f.Name, data.Data, f.Kind)
		}
		if data.Description != f.Help {
			t.Errorf("%s is described as %q", f.Name, data.Description)
		}
	}
}

func kindOf(m metricdata.Metrics) measure.Kind {
	switch m.Data.(type) {
	case metricdata.Histogram[float64]:
		return measure.Histogram
	case metricdata.Sum[int64], metricdata.Sum[float64]:
		return measure.Counter
	case metricdata.Gauge[float64]:
		return measure.Gauge
	}
	return 255
}

type away struct{}

func (away) StoreStats() ratelimit.StoreStats {
	return ratelimit.StoreStats{Name: "fleet", Calls: []ratelimit.StoreCalls{{Result: "ok"}}}
}

func TestAMeterOfAnyKindServes(t *testing.T) {
	m, err := otel.New(noop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	m.Observe(admission.Event{Gate: "g"})
}

func TestObserveAllocatesNothing(t *testing.T) {
	m, _ := newMetrics(t)
	e := admission.Event{Gate: "g", Served: time.Millisecond}
	m.Observe(e)
	if n := testing.AllocsPerRun(1000, func() { m.Observe(e) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleNew() {
	reader := sdk.NewManualReader()
	m, err := otel.New(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("headgate"))
	if err != nil {
		panic(err)
	}
	admission.MustNew(admission.Options{Observer: m})

	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		panic(err)
	}
	var names []string
	for _, metric := range all.ScopeMetrics[0].Metrics {
		names = append(names, metric.Name)
	}
	fmt.Println(slices.Contains(names, "headgate_requests_total"), slices.Contains(names, "headgate_limit"))
	// Output: true true
}
