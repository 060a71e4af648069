package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/dashboard"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// shop is a service with one of everything that the kit can show: a gate with
// pools, limits, a shared limit whose store comes and goes, calls to an API that
// throttles and fails, a work queue, a gate in shadow.
type shop struct {
	*httptest.Server
	gate   *admission.Gate
	shadow *admission.Gate
	fleet  fleetStore
	slow   atomic.Int64 // nanoseconds that the database takes
	names  []string     // aliases of the tenants
	api    *httptest.Server
	broken atomic.Bool // the API
	call   *outbound.Transport
}

// newShop starts a shop at addr, or anywhere. Its tenants are shown under names.
func newShop(t testing.TB, addr string, names ...string) *shop {
	t.Helper()
	s := &shop{names: names}
	s.slow.Store(int64(4 * time.Millisecond))
	reg := prometheus.NewRegistry()
	m := metrics.New(reg)
	m.ShowCallers()
	s.gate = admission.MustNew(admission.Options{
		Name:     "shop",
		Identify: caller.APIKey("X-API-Key", s.lookup),
		Rate: ratelimit.All(
			ratelimit.PerKey(80, 80, ratelimit.Name("each")),
			fleet{ratelimit.PerKey(100_000, 100_000, ratelimit.Name("fleet")), &s.fleet},
		),
		Anonymous: ratelimit.PerKey(5, 5, ratelimit.MaxKeys(4)),
		Pool:      admission.Pool{Limit: shed.Throughput{Max: 256}},
		Pools: map[string]admission.Pool{
			"reports": {Limit: shed.Fixed(4), MaxWaitingBytes: 1 << 20},
			"legacy":  {Limit: floored{}},
		},
		Deadline: admission.TimeoutHeader("X-Timeout", 2*time.Second),
		Observer: m,
	})
	s.shadow = admission.MustNew(admission.Options{
		Name: "trial", Rate: ratelimit.PerKey(1, 1), Pool: admission.Pool{Limit: shed.Fixed(1000)}, Shadow: admission.ShadowRate, Observer: m,
	})
	s.startAPI(t, m)
	work := newWork(t)
	m.Queue("mail", work)

	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.Handle("/headgate/", dashboard.Handler(
		dashboard.Title("Shop"), dashboard.Gate(s.gate),
		dashboard.Outbound("billing", s.call), dashboard.Queue("mail", work)))
	db := newDatabase(16, &s.slow)
	mux.Handle("/checkout", s.gate.At(priority.Critical)(s.checkout(db, work)))
	mux.Handle("/browse", s.gate.At(priority.Normal)(db))
	mux.Handle("/profile", s.gate.At(priority.High)(db))
	mux.Handle("/export", s.gate.At(priority.Batch)(db))
	mux.Handle("/trial", s.shadow.At(priority.Normal)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	mux.Handle("/legacy", s.gate.At(priority.High, admission.InPool("legacy"))(newDatabase(4, &s.slow)))
	mux.Handle("/report", s.gate.At(priority.Batch, admission.InPool("reports"))(newDatabase(4, &s.slow)))
	s.Server = httptest.NewUnstartedServer(mux)
	if addr != "" {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		s.Listener.Close()
		s.Listener = l
	}
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections() // a stream would hold Close up until it ends
		s.Close()
	})
	return s
}

func (s *shop) lookup(_ context.Context, key string) (caller.Caller, bool) {
	for i, name := range s.names {
		if key == fmt.Sprint("key-", i) {
			return caller.Caller{Key: key, Alias: name}, true
		}
	}
	return caller.Caller{}, false
}

// startAPI starts the other side: it takes 40 calls a second and throttles the rest.
func (s *shop) startAPI(t testing.TB, m *metrics.Metrics) {
	limit := ratelimit.PerKey(40, 10)
	s.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d := limit.Take(r.Context(), time.Now(), ratelimit.Key{}, 1, 0); !d.OK {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		} else if s.broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(s.api.Close)
	s.call = outbound.MustNew(outbound.Options{
		Name: "billing", Rate: ratelimit.PerKey(60, 20), MaxWait: 100 * time.Millisecond, Observer: m.Outbound(),
	})
}

func (s *shop) checkout(db http.Handler, work *queue.Queue[int]) http.Handler {
	client := http.Client{Transport: s.call, Timeout: time.Second}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if req, err := http.NewRequestWithContext(r.Context(), "GET", s.api.URL+"/charge", nil); err == nil {
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		_ = work.Push(time.Now(), 1, queue.Ticket{Level: priority.Normal}) // a full queue drops the oldest
		db.ServeHTTP(w, r)
	})
}

func newWork(t testing.TB) *queue.Queue[int] {
	t.Helper()
	q, err := queue.NewQueue(queue.WorkConfig[int]{MaxWaiting: 50, DropOldest: true})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// newDatabase returns a handler that works in so many connections, and as long as
// it is told.
func newDatabase(width int, slow *atomic.Int64) http.Handler {
	conns := make(chan struct{}, width)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case conns <- struct{}{}:
			defer func() { <-conns }()
		case <-r.Context().Done():
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		select {
		case <-time.After(time.Duration(slow.Load())):
		case <-r.Context().Done():
			w.WriteHeader(http.StatusGatewayTimeout)
		}
	})
}

// floored is a limit that can fall no further than it is.
type floored struct{}

func (floored) New() (shed.Law, error)                     { return floored{}, nil }
func (floored) Limit() int                                 { return 1 }
func (floored) Bounds() (least, most int)                  { return 1, 8 }
func (floored) Note(time.Time, shed.Load) (none shed.Step) { return none }
func (floored) Done(time.Time, shed.Load, shed.Sample) (none shed.Step) {
	return none
}

// fleet is a limit that says it is shared through a store.
type fleet struct {
	ratelimit.Limiter
	store *fleetStore
}

type fleetStore struct {
	away  atomic.Bool
	calls atomic.Uint64
}

// Take counts as a call to the store.
func (f fleet) Take(ctx context.Context, now time.Time, key ratelimit.Key, cost int, maxWait time.Duration) ratelimit.Decision {
	f.store.calls.Add(1)
	return f.Limiter.Take(ctx, now, key, cost, maxWait)
}

// StoreStats says how the store is.
func (f fleet) StoreStats() ratelimit.StoreStats {
	calls := f.store.calls.Load()
	s := ratelimit.StoreStats{
		Name: "fleet", State: "shared", Peers: 3, Rate: 100_000, ShareRate: 33_333, Keys: 5,
		Calls:    []ratelimit.StoreCalls{{Result: "ok", Count: calls}, {Result: "timeout", Count: calls / 50}},
		CallTime: time.Duration(calls) * 300 * time.Microsecond,
	}
	if f.store.away.Load() {
		s.State, s.Why, s.Degraded, s.AwayKeys = "degraded", "timeout", true, 5
	}
	return s
}

// load sends requests at a rate until stopped: mostly exports, some browsing, a few
// checkouts, from tenants in turn and from strangers.
func (s *shop) load(t testing.TB, perSecond int) (stop func()) {
	t.Helper()
	clients := newClients()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			for range perSecond / 100 {
				all.Go(func() { s.send(ctx, clients[rand.IntN(len(clients))]) })
			}
			<-tick.C
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		all.Wait()
		for _, c := range clients {
			c.CloseIdleConnections()
		}
	})
}

// newClients returns clients at several addresses of this machine.
func newClients() (all []*http.Client) {
	for i := range 8 {
		dial := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(i+1))}}
		all = append(all, &http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{DialContext: dial.DialContext, MaxIdleConnsPerHost: 64},
		})
	}
	return all
}

func (s *shop) send(ctx context.Context, client *http.Client) {
	paths := []string{
		"/export", "/export", "/export", "/export", "/browse", "/browse", "/browse", "/profile", "/checkout", "/checkout",
		"/report", "/legacy", "/trial",
	}
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+paths[rand.IntN(len(paths))], nil)
	if err != nil {
		return
	}
	req.Header.Set("X-Timeout", "800")
	if n := rand.IntN(len(s.names) + 1); n < len(s.names) {
		req.Header.Set("X-API-Key", fmt.Sprint("key-", n))
	}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
}
