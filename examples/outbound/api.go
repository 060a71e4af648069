package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// api is somebody else's service: it takes 30 ms per call, and no more calls per
// second than the quota of the day. It is the judge of this example: what it
// accepted is what got through.
type api struct {
	latency time.Duration

	mu       sync.Mutex
	limiter  *rate.Limiter
	quota    rate.Limit
	accepted []time.Time
	refused  int
}

func newAPI(quota rate.Limit, latency time.Duration) *api {
	a := &api{latency: latency}
	a.setQuota(quota)
	return a
}

// setQuota changes the quota. The owner of the API tells nobody.
func (a *api) setQuota(quota rate.Limit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quota = quota
	a.limiter = rate.NewLimiter(quota, burstOf(quota))
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

// busiest returns the most calls accepted in any second that begins in [from, to).
func (a *api) busiest(from, to time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	most, j := 0, 0
	for i, first := range a.accepted {
		for j < len(a.accepted) && a.accepted[j].Sub(first) < time.Second {
			j++
		}
		if !first.Before(from) && first.Before(to) {
			most = max(most, j-i)
		}
	}
	return most
}

// listen serves the API on the loopback until the context ends.
func (a *api) listen(ctx context.Context) (url string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: a}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}
