package metrics_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
)

// scrape is one reading of a registry: name{label="value",…} to value. A
// histogram's value is its count.
type scrape map[string]float64

func read(t testing.TB, reg prometheus.Gatherer) scrape {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	s := scrape{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			s[series(f.GetName(), m)] = valueOf(m)
		}
	}
	return s
}

func series(name string, m *dto.Metric) string {
	var labels []string
	for _, l := range m.GetLabel() {
		if l.GetValue() != "" {
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount())
	}
	return m.Gauge.GetValue()
}

// sum adds up the series of a family that have all of the labels.
func (s scrape) sum(family string, labels ...string) (n float64) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		head, rest, _ := strings.Cut(name, "{")
		if head != family {
			continue
		}
		has := strings.Split(strings.TrimSuffix(rest, "}"), ",")
		if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
			n += s[name]
		}
	}
	return n
}

func (s scrape) want(t testing.TB, value float64, family string, labels ...string) {
	t.Helper()
	if got := s.sum(family, labels...); got != value {
		t.Errorf("%s %v = %v, want %v", family, labels, got, value)
	}
}

// samples counts what a scrape in the text format would show, buckets included.
func samples(t testing.TB, reg prometheus.Gatherer) (n int) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n++
			if h := m.GetHistogram(); h != nil {
				n += len(h.GetBucket()) + 2
			}
		}
	}
	return n
}

func capped(o admission.Observer, slots int) *admission.Gate {
	return admission.MustNew(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(slots), MaxWait: admission.NoWait}, Observer: o})
}

func ok(http.ResponseWriter, *http.Request) {}

func get(h http.Handler, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
