package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// api is another company's service: it takes 30 ms per call, and no more calls per
// second than the quota of the day. It is the judge of this example: what it
// accepted is what got through.
type api struct {
	latency time.Duration

	after   int        // accepted calls after which the quota changes, without notice
	becomes rate.Limit // to this

	mu       sync.Mutex
	limiter  *rate.Limiter
	quota    rate.Limit
	accepted []time.Time
	refused  int
}

func newAPI(s scenario) *api {
	return &api{
		latency: s.latency, after: s.after, becomes: s.tightened,
		quota: s.quota, limiter: rate.NewLimiter(s.quota, burstOf(s.quota)),
	}
}

// burstOf is what may arrive at once: a fifth of a second's worth.
func burstOf(quota rate.Limit) int { return max(1, int(quota)/5) }

// ServeHTTP accepts a notification, or says how long to stay away.
func (a *api) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	ok := a.take(time.Now())
	time.Sleep(a.latency)
	if !ok {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "quota exceeded", http.StatusTooManyRequests)
	}
}

func (a *api) take(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.limiter.AllowN(now, 1) {
		a.refused++
		return false
	}
	a.accepted = append(a.accepted, now)
	if len(a.accepted) == a.after {
		a.quota, a.limiter = a.becomes, rate.NewLimiter(a.becomes, burstOf(a.becomes))
	}
	return true
}

// counts are the API's books.
type counts struct {
	quota             rate.Limit
	accepted, refused int
}

func (a *api) counts() counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return counts{a.quota, len(a.accepted), a.refused}
}

// busiest returns the most calls accepted within one second, among those accepted
// before the quota changed and among those after.
func (a *api) busiest() (before, after int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change := min(a.after, len(a.accepted))
	return busiestOf(a.accepted[:change]), busiestOf(a.accepted[change:])
}

func busiestOf(at []time.Time) (most int) {
	j := 0
	for i, first := range at {
		for j < len(at) && at[j].Sub(first) < time.Second {
			j++
		}
		most = max(most, j-i)
	}
	return most
}

// network is what lies between the workers and the API.
type network struct {
	listen func() (net.Listener, error)
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
}

var loopback = network{
	listen: func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") },
	dial:   new(net.Dialer).DialContext,
}

// transport returns a base that keeps a connection for each worker.
func (n network) transport(workers int) *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: workers, DialContext: n.dial}
}

// serve serves the API until the context ends.
func (a *api) serve(ctx context.Context, n network) (url string, err error) {
	l, err := n.listen()
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: a}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}
