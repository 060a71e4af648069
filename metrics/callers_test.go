package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics"
)

// snapshot is a gate that knows many callers, some by more than one list.
func snapshot() admission.Stats {
	s := admission.Stats{Name: "g", ID: 1}
	for i := range 16 {
		s.Served = append(s.Served, admission.CallerCount{Alias: fmt.Sprint("served ", i), Count: uint64(100 - i)})
		s.Refused = append(s.Refused, admission.CallerCount{Alias: fmt.Sprint("refused ", i), Count: uint64(50 - i)})
		s.Busiest = append(s.Busiest, admission.CallerCount{Alias: fmt.Sprint("served ", i), Count: 2_500_000})
	}
	s.Limited = []admission.CallerCount{{Alias: "other", Count: 3}, {Alias: "a\xffb", Count: 2}}
	return s
}

func callers(reg *prometheus.Registry) (shown map[string]float64) {
	shown = map[string]float64{}
	families, _ := reg.Gather()
	for _, f := range families {
		if f.GetName() != "headgate_callers" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			shown[labels["caller"]+"|"+labels["what"]] = m.GetGauge().GetValue()
		}
	}
	return shown
}

func TestCallersAreShownOnlyWhenAskedForAndBounded(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	m.Attach("g", snapshot)
	if got := callers(reg); len(got) != 0 {
		t.Fatalf("shown without being asked for: %v", got)
	}
	m.ShowCallers()
	got := callers(reg)
	aliases, sum := map[string]bool{}, 0.0
	for series, n := range got {
		alias, what, _ := strings.Cut(series, "|")
		aliases[alias] = true
		if what == "served" {
			sum += n
		}
	}
	if len(aliases) != 21 || !aliases["other"] {
		t.Errorf("%d aliases: %v", len(aliases), aliases)
	}
	if sum != 16*100-120 {
		t.Errorf("%v served in all, want %v: other has what is left", sum, 16*100-120)
	}
	for series, want := range map[string]float64{
		"served 0|served": 100, "served 0|slot_seconds": 2.5, "refused 0|refused": 50, "other|limited": 3, "a\uFFFDb|limited": 2,
	} {
		if got[series] != want {
			t.Errorf("%s = %v, want %v", series, got[series], want)
		}
	}
}

func TestCallersOfGatesWithOneNameAreAddedUp(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	m.ShowCallers()
	for id := range 2 {
		m.Attach("g", func() admission.Stats {
			s := snapshot()
			s.ID = uint64(id + 1)
			return s
		})
	}
	if got := callers(reg)["served 0|served"]; got != 200 {
		t.Errorf("%v served by two gates, want 200", got)
	}
}

// What the gate itself shows of a caller is its alias or a digest, never its key.
func TestCallersAreNotShownByKey(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	m.ShowCallers()
	h := admission.MustNew(admission.Options{Observer: m}).Handler(http.HandlerFunc(ok))
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "203.0.113.77:1"
	h.ServeHTTP(httptest.NewRecorder(), r)
	got := callers(reg)
	if len(got) == 0 {
		t.Error("not shown")
	}
	for series := range got {
		if strings.Contains(series, "203.0.113") {
			t.Errorf("shown by its address: %q", series)
		}
	}
}
