package metrics_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// However many callers there are, the scrape stays small, and their requests add up.
//
// Case ME-01: field report
func TestManyCallersMakeASmallScrape(t *testing.T) {
	const callers, bound = 50_000, 10_000
	reg := prometheus.NewRegistry()
	gate := admission.MustNew(admission.Options{
		Rate:     ratelimit.PerKey(0.001, 1, ratelimit.MaxKeys(bound)),
		Observer: metrics.New(reg),
	})
	refused := 0
	for i := range callers {
		caller := caller.Caller{Key: fmt.Sprint("user-", i), Verified: true}
		for range 2 {
			p, err := gate.Admit(t.Context(), admission.Ticket{Caller: caller})
			if err != nil {
				refused++
				continue
			}
			p.Release(shed.Served)
		}
	}
	if n := samples(t, reg); n >= 500 {
		t.Errorf("%d samples on the scrape, want fewer than 500", n)
	}
	s := read(t, reg)
	s.want(t, 2*callers, "headgate_requests_total")
	s.want(t, float64(refused), "headgate_requests_total", "reason=rate-limited")
	s.want(t, 2*callers, "headgate_rate_decisions_total")
	if refused == 0 || refused == 2*callers {
		t.Errorf("%d refused: the premise is that some are", refused)
	}
	if keys := s.sum("headgate_rate_keys", "limit=rate"); keys > bound {
		t.Errorf("%v keys tracked, the bound is %d", keys, bound)
	}
	if over := s.sum("headgate_rate_decisions_total", "source=overflow"); over < 2*(callers-bound)*0.9 {
		t.Errorf("%v decisions by the overflow bucket, want those of the callers beyond the bound", over)
	}
}

// What a client sends never becomes a label.
//
// Case ME-02: field report
func TestNothingAClientSendsBecomesALabel(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := capped(metrics.New(reg), 1).Handler(http.HandlerFunc(ok))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) // the route's series are there
	before := samples(t, reg)
	for i := range 10_000 {
		r := httptest.NewRequest("GET", fmt.Sprintf("/path-%d", i), nil)
		r.Method = fmt.Sprintf("METHOD%d", i)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if after := samples(t, reg); after != before {
		t.Errorf("%d samples before the requests, %d after", before, after)
	}
	for name := range read(t, reg) {
		if strings.Contains(name, "METHOD") || strings.Contains(name, "path-") {
			t.Errorf("%s is from the wire", name)
		}
	}
}

// Whatever requests do, the gauges stay within their bounds and come back to zero.
//
// Case ME-04: field report
func TestGaugesReturnToZero(t *testing.T) {
	const slots, requests, clients = 8, 10_000, 40
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		gate := admission.MustNew(admission.Options{
			Pool: admission.Pool{Limit: shed.Fixed(slots), MaxWaiting: 16, MaxWait: 20 * time.Millisecond}, Observer: metrics.New(reg),
		})
		handlers := []http.Handler{
			gate.Handler(behave(func(http.ResponseWriter, *http.Request) { panic("oops") })),
			gate.Handler(behave(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })),
			gate.Handler(behave(func(w http.ResponseWriter, _ *http.Request) { takeOver(w) })),
			gate.Handler(behave(ok)),
			gate.At(priority.Critical)(behave(ok)),
			gate.At(priority.Batch, admission.Exempt())(http.HandlerFunc(ok)),
		}
		var all sync.WaitGroup
		for c := range clients {
			all.Go(func() {
				for i := range requests / clients {
					serve(handlers[(c+i)%len(handlers)], (c*7+i)%5 == 0)
				}
			})
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		scrapes := 0
		for running := true; running; scrapes++ {
			select {
			case <-done:
				running = false
			case <-time.After(5 * time.Millisecond):
			}
			within(t, read(t, reg), "headgate_in_flight", slots)
			within(t, read(t, reg), "headgate_queue_depth", 16)
		}
		s := read(t, reg)
		s.want(t, 0, "headgate_in_flight")
		s.want(t, 0, "headgate_queue_depth")
		s.want(t, requests, "headgate_requests_total")
		for _, reason := range []string{"admitted", "exempt", "queue-full", "waited-too-long", "client-gone"} {
			if s.sum("headgate_requests_total", "reason="+reason) == 0 {
				t.Errorf("no request ended as %s: the mix is not one", reason)
			}
		}
		if scrapes < 50 {
			t.Errorf("only %d scrapes", scrapes)
		}
	})
}

func within(t *testing.T, s scrape, family string, most float64) {
	t.Helper()
	for name, v := range s {
		if strings.HasPrefix(name, family+"{") && (v < 0 || v > most) {
			t.Errorf("%s = %v, want within 0 and %v", name, v, most)
		}
	}
}

// behave works for a moment before it does what it does.
func behave(f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(7 * time.Millisecond)
		f(w, r)
	})
}

func takeOver(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}

// serve sends one request, which leaves early if it is impatient.
func serve(h http.Handler, impatient bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if impatient {
		time.AfterFunc(3*time.Millisecond, cancel)
	}
	defer func() { _ = recover() }()
	h.ServeHTTP(hijackable{httptest.NewRecorder()}, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
}

type hijackable struct{ *httptest.ResponseRecorder }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	near, far := net.Pipe()
	far.Close()
	return near, bufio.NewReadWriter(bufio.NewReader(near), bufio.NewWriter(near)), nil
}

// Two gates on one registry: both are counted.
//
// Case ME-06: field report
func TestTwoGatesOnOneRegistryAreBothCounted(t *testing.T) {
	for name, gates := range map[string][2]string{"same name": {"", ""}, "own names": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			for _, g := range gates {
				gate := admission.MustNew(admission.Options{Name: g, Pool: admission.Pool{Limit: shed.Fixed(5)}, Observer: metrics.New(reg)})
				h := gate.Handler(http.HandlerFunc(ok))
				for range 3 {
					get(h)
				}
			}
			s := read(t, reg)
			s.want(t, 6, "headgate_requests_total")
			s.want(t, 10, "headgate_limit")
			if gates[0] != gates[1] {
				s.want(t, 3, "headgate_requests_total", "gate=a")
				s.want(t, 3, "headgate_requests_total", "gate=b")
			}
		})
	}
}

// A gate that only refuses is seen to: its slots are taken at every scrape.
//
// Case ME-08: field report
func TestAGateThatOnlyRefusesShowsItsWorkInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		gate := capped(metrics.New(reg), 5)
		for range 5 {
			p, err := gate.Admit(t.Context(), admission.Ticket{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Release(shed.Served)
		}
		h := gate.Handler(http.HandlerFunc(ok))
		for second := range 60 {
			time.Sleep(time.Second)
			get(h)
			s := read(t, reg)
			s.want(t, 5, "headgate_in_flight")
			s.want(t, float64(second+1), "headgate_requests_total", "outcome=refused", "reason=capacity")
		}
	})
}
