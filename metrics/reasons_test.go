package metrics_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

func TestEveryReasonIsCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	for r := range shed.ReasonCount {
		if r := shed.Reason(r); r.Refused() {
			for range int(r) {
				m.Observe(admission.Event{Gate: "every", Level: priority.High, Reason: r})
			}
		}
	}
	s := read(t, reg)
	for r := range shed.ReasonCount {
		if r := shed.Reason(r); r.Refused() {
			s.want(t, float64(r), "headgate_requests_total", "gate=every", "level=high", "outcome=refused", "reason="+r.String())
		}
	}
}

// The classic buckets reach as far as a wait may: a quantile of waits of 25 s, read as
// Prometheus does, is no 1 s.
//
// Case OP-04: tried on the product
func TestBucketsReachLongWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		gate := admission.MustNew(admission.Options{
			Pool:     admission.Pool{Limit: shed.Fixed(1), MaxWait: time.Minute},
			Observer: metrics.New(reg),
		})
		for range 100 {
			held, err := gate.Admit(t.Context(), admission.Ticket{})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				p, err := gate.Admit(t.Context(), admission.Ticket{})
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(25 * time.Second)
				p.Release(shed.Served)
			}()
			time.Sleep(25 * time.Second)
			held.Release(shed.Served)
			<-done
		}
		for _, name := range []string{"headgate_wait_seconds", "headgate_service_seconds"} {
			if p99 := quantile(t, reg, name, 0.99); p99 < 20 || p99 > 30 {
				t.Errorf("p99 of %s = %v s, want 20 to 30", name, p99)
			}
		}
	})
}

// quantile reads a quantile off the classic buckets, as histogram_quantile does.
func quantile(t *testing.T, reg prometheus.Gatherer, name string, q float64) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); f.GetName() == name && h.GetSampleCount() > 0 {
				return quantileOf(h, q)
			}
		}
	}
	t.Fatalf("no samples of %s", name)
	return math.NaN()
}

func quantileOf(h *dto.Histogram, q float64) float64 {
	rank, below, lower := q*float64(h.GetSampleCount()), 0.0, 0.0
	for _, b := range h.GetBucket() {
		if n := float64(b.GetCumulativeCount()); n >= rank {
			return lower + (b.GetUpperBound()-lower)*(rank-below)/(n-below)
		}
		below, lower = float64(b.GetCumulativeCount()), b.GetUpperBound()
	}
	return lower // beyond the last bound
}
