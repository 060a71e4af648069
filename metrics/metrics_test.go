package metrics_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/metrics/internal/measure"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

func TestOneRegistererHasOneMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	if first := metrics.New(reg); metrics.New(reg) != first {
		t.Error("a second New on one registry made another Metrics")
	}
	wrapped := prometheus.WrapRegistererWithPrefix("other_", reg)
	if a, b := metrics.New(wrapped), metrics.New(wrapped); a != b || a == metrics.New(reg) {
		t.Error("New behind a prefix is not one of its own")
	}
	if metrics.New(nil) == nil {
		t.Error("New(nil) is nil")
	}
}

func TestNewSaysWhoseNameIsTaken(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "headgate_limit", Help: "somebody else's"}))
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "headgate_limit") {
			t.Errorf("panic = %q, want one that names the metric", text)
		}
	}()
	metrics.New(reg)
}

func TestTheSameGateTwiceCountsOnce(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	opts := admission.Options{Pool: admission.Pool{Limit: shed.Fixed(5), MaxWait: admission.NoWait}, Observer: admission.Observers(m, metrics.New(reg), m)}
	gate := admission.MustNew(opts)
	m.Attach("default", gate.Stats)
	if err := gate.Update(opts); err != nil {
		t.Fatal(err)
	}
	get(gate.Handler(http.HandlerFunc(ok)))
	for range 2 {
		s := read(t, reg)
		s.want(t, 5, "headgate_limit")
		s.want(t, 1, "headgate_requests_total")
	}
}

func TestARefusalIsAnIncreaseFromZero(t *testing.T) {
	reg := prometheus.NewRegistry()
	capped(metrics.New(reg), 1)
	s := read(t, reg)
	for _, level := range priority.All() {
		name := "headgate_requests_total{gate=default,level=" + level.String() + ",outcome=refused,reason=capacity}"
		if v, there := s[name]; !there || v != 0 {
			t.Errorf("%s = %v, %v before the first request, want 0", name, v, there)
		}
	}
}

func TestAGateShowsWhatIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		gate := admission.MustNew(admission.Options{
			Name: "edge", Pool: admission.Pool{Limit: shed.Fixed(1), MaxWaiting: 9, MaxWait: time.Second},
			Rate:     ratelimit.PerKey(50, 100),
			Pools:    map[string]admission.Pool{"db": {Limit: shed.Throughput{Min: 3, Initial: 4, Max: 20}}},
			Observer: metrics.New(reg),
		})
		release := make(chan struct{})
		hold := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })
		for range 3 {
			go get(gate.At(priority.High)(hold))
			synctest.Wait()
		}
		go get(gate.At(priority.Batch, admission.InPool("db"))(hold))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		s := read(t, reg)
		s.want(t, 1, "headgate_in_flight", "pool=db")
		s.want(t, 2, "headgate_in_flight", "gate=edge")
		s.want(t, 2, "headgate_queue_depth", "level=high")
		s.want(t, 0.1, "headgate_queue_oldest_seconds")
		s.want(t, 4, "headgate_limit", "pool=db")
		s.want(t, 3, "headgate_limit_least", "pool=db")
		s.want(t, 20, "headgate_limit_most", "pool=db")
		s.want(t, 50, "headgate_rate_per_second", "limit=rate")
		s.want(t, 100, "headgate_rate_burst", "limit=rate")
		s.want(t, 2, "headgate_limit_cause") // one cause for each pool
		close(release)
		synctest.Wait()
		s = read(t, reg)
		s.want(t, 3, "headgate_requests_total", "level=high", "outcome=served")
		s.want(t, 1, "headgate_requests_total", "level=batch", "pool=db")
		s.want(t, 2, "headgate_wait_seconds", "level=high")
		s.want(t, 4, "headgate_service_seconds")
	})
}

func TestRefusalsSayWhatTheyHandedOut(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	for _, e := range []admission.Event{
		{Reason: shed.RateLimited, RetryAfter: 3 * time.Second},
		{Reason: shed.QueueFull, RetryAfter: 9 * time.Second, Level: priority.Batch},
		{Reason: shed.NotAdmissible}, {Reason: shed.Unidentified}, {Reason: shed.ClientGone},
	} {
		m.Observe(e)
	}
	s := read(t, reg)
	s.want(t, 1, "headgate_retry_after_seconds", "status=429")
	s.want(t, 1, "headgate_retry_after_seconds", "status=503")
	s.want(t, 5, "headgate_requests_total", "outcome=refused")
}

func TestShadowRefusalsAreShown(t *testing.T) {
	reg := prometheus.NewRegistry()
	gate := admission.MustNew(admission.Options{
		Rate: ratelimit.PerKey(1, 1), Shadow: admission.ShadowRate, Observer: metrics.New(reg),
	})
	h := gate.Handler(http.HandlerFunc(ok))
	for range 3 {
		get(h)
	}
	s := read(t, reg)
	s.want(t, 3, "headgate_requests_total", "outcome=served")
	s.want(t, 2, "headgate_shadowed_total", "reason=rate-limited", "level=normal")
}

func TestTransportsAreCountedByName(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	stats := pacer.Stats{
		Operations: []pacer.OperationStats{
			{Multiplier: 1, InFlight: 2, RetryLeft: 7},
			{Multiplier: 0.5, InFlight: 1, Waiting: 4, RetryLeft: 3, PauseLeft: time.Second},
		},
		Services: []pacer.ServiceStats{{PauseLeft: 2 * time.Second}},
	}
	o := m.Outbound()
	o.Attach("billing", func() pacer.Stats { return stats })
	o.Attach("mail", func() pacer.Stats { return pacer.Stats{} })
	for _, e := range []outbound.Event{
		{Type: outbound.EventAnswered, Kind: verdict.Throttled, Took: time.Second},
		{Type: outbound.EventRefused, Reason: pacer.Paused},
		{Type: outbound.EventSlowed}, {Type: outbound.EventRetried},
		{Type: outbound.EventStopped, Stop: outbound.StopBudgetSpent},
	} {
		e.Transport = "billing"
		o.Observe(e)
	}
	s := read(t, reg)
	s.want(t, 1, "headgate_outbound_attempts_total", "transport=billing", "kind=throttled")
	s.want(t, 0, "headgate_outbound_attempts_total", "transport=mail")
	s.want(t, 1, "headgate_outbound_not_sent_total", "reason=paused")
	s.want(t, 1, "headgate_outbound_slowdowns_total")
	s.want(t, 1, "headgate_outbound_retries_total")
	s.want(t, 1, "headgate_outbound_gave_up_total", "reason=budget-spent")
	s.want(t, 3, "headgate_outbound_in_flight", "transport=billing")
	s.want(t, 4, "headgate_outbound_waiting", "transport=billing")
	s.want(t, 0.5, "headgate_outbound_multiplier", "transport=billing")
	s.want(t, 2, "headgate_outbound_pause_seconds", "transport=billing")
	s.want(t, 3, "headgate_outbound_retry_budget")
}

func TestWorkQueuesAndStoresAreShown(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	q, err := queue.NewQueue(queue.WorkConfig[int]{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Push(time.Now(), 1, queue.Ticket{Level: priority.High}); err != nil {
		t.Fatal(err)
	}
	m.Queue("mail", q)
	fleet := stored{Limiter: ratelimit.Unlimited, stats: ratelimit.StoreStats{
		Name: "fleet", Degraded: true, Peers: 3, Rate: 90, ShareRate: 30, Keys: 5, AwayKeys: 2,
		Calls: []ratelimit.StoreCalls{{Result: "ok", Count: 8}, {Result: "timeout", Count: 1}},
	}}
	m.Store(fleet)
	admission.MustNew(admission.Options{Rate: fleet, Observer: m})
	s := read(t, reg)
	s.want(t, 1, "headgate_work_depth", "queue=mail", "level=high")
	s.want(t, 1, "headgate_store_degraded", "store=fleet")
	s.want(t, 3, "headgate_store_peers", "store=fleet")
	s.want(t, 30, "headgate_store_rate_per_second", "scope=share")
	s.want(t, 2, "headgate_store_keys", "state=away")
	s.want(t, 9, "headgate_store_calls_total")
}

// stored is a limiter that knows where it stands with a store.
type stored struct {
	ratelimit.Limiter
	stats ratelimit.StoreStats
}

func (s stored) StoreStats() ratelimit.StoreStats { return s.stats }

func TestNamesThatAreNotTextAreShown(t *testing.T) {
	reg := prometheus.NewRegistry()
	gate := admission.MustNew(admission.Options{Name: "a\xff", Pool: admission.Pool{Limit: shed.Fixed(1)}, Observer: metrics.New(reg)})
	get(gate.Handler(http.HandlerFunc(ok)))
	read(t, reg).want(t, 1, "headgate_requests_total", "gate=a\uFFFD")
}

func TestEveryMetricIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range measure.Families() {
		if !strings.Contains(string(doc), strings.TrimPrefix(f.Name, "headgate_")+" ") {
			t.Errorf("doc.go does not name %s", f.Name)
		}
	}
}

func TestMetricsAllocateNothing(t *testing.T) {
	m := metrics.New(prometheus.NewRegistry())
	admitted := admission.Event{Gate: "g", Reason: shed.Admitted, Served: time.Millisecond, Waited: time.Millisecond}
	refused := admission.Event{Gate: "g", Reason: shed.QueueFull, RetryAfter: time.Second}
	o := m.Outbound()
	answered := outbound.Event{Transport: "t", Type: outbound.EventAnswered, Took: time.Millisecond}
	observe := func() { m.Observe(admitted); m.Observe(refused); o.Observe(answered) }
	observe()
	if n := testing.AllocsPerRun(1000, observe); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
