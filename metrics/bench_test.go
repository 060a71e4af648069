package metrics_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func gateWith(o admission.Observer) *admission.Gate {
	return admission.MustNew(admission.Options{
		Rate: ratelimit.PerKey(1e9, 1e9), Pool: admission.Pool{Limit: shed.Throughput{Max: 512}}, Observer: o,
	})
}

func admitAndRelease(b *testing.B, gate *admission.Gate) func() {
	ctx := context.Background()
	t := admission.Ticket{Caller: caller.Caller{Key: "acme", Verified: true}, Level: priority.High}
	return func() {
		p, err := gate.Admit(ctx, t)
		if err != nil {
			b.Fatal(err)
		}
		p.Release(shed.Served)
	}
}

func throughHandler(gate *admission.Gate) func() {
	h := gate.Handler(http.HandlerFunc(ok))
	r, _ := http.NewRequest("GET", "http://example.com/search", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	w := nullWriter{http.Header{}}
	return func() { h.ServeHTTP(w, r) }
}

// What metrics add to an admitted request. Short blocks with and without take
// turns, each pair is one sample, and the median of the differences is reported: a
// busy machine slows both of a pair.
func BenchmarkMetrics(b *testing.B) {
	m := metrics.New(prometheus.NewRegistry())
	b.Run("admit-release", func(b *testing.B) {
		compare(b, admitAndRelease(b, gateWith(nil)), admitAndRelease(b, gateWith(m)))
	})
	b.Run("handler", func(b *testing.B) {
		compare(b, throughHandler(gateWith(nil)), throughHandler(gateWith(m)))
	})
	b.Run("observe", func(b *testing.B) {
		e := admission.Event{Gate: "default", Level: priority.High, Reason: shed.Admitted, Served: 80 * time.Microsecond}
		b.ReportAllocs()
		for b.Loop() {
			m.Observe(e)
		}
	})
}

const block = 200

func compare(b *testing.B, without, with func()) {
	var bare, more []float64
	b.ReportAllocs()
	for b.Loop() {
		one, other := timed(without), timed(with)
		third, fourth := timed(with), timed(without)
		bare = append(bare, (one+fourth)/2)
		more = append(more, (other+third-one-fourth)/2)
	}
	slices.Sort(bare)
	slices.Sort(more)
	b.ReportMetric(bare[len(bare)/2], "ns-bare")
	b.ReportMetric(more[len(more)/2], "ns-more")
}

// timed returns how long one call takes, in nanoseconds.
func timed(f func()) float64 {
	began := time.Now()
	for range block {
		f()
	}
	return float64(time.Since(began).Nanoseconds()) / block
}

type nullWriter struct{ header http.Header }

func (w nullWriter) Header() http.Header         { return w.header }
func (w nullWriter) Write(b []byte) (int, error) { return len(b), nil }
func (w nullWriter) WriteHeader(int)             {}
