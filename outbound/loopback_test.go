package outbound_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// arrivals makes a server on the loopback that answers after latency, and counts
// what arrives before a given time.
func arrivals(t *testing.T, latency time.Duration) (url string, before func(end time.Time) int) {
	var mu sync.Mutex
	var at []time.Time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		at = append(at, time.Now())
		mu.Unlock()
		time.Sleep(latency)
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(server.Close)
	return server.URL, func(end time.Time) int {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, a := range at {
			if a.Before(end) {
				n++
			}
		}
		return n
	}
}

// The number that gets through depends on the ceiling and on nothing else: not on
// how many workers there are, nor on how fast the server answers.
func TestFiftyWorkersStayUnderOneCeiling(t *testing.T) {
	const limit, burst, window = 200, 100, time.Second
	const bound = burst + limit*int(window/time.Second)
	for name, c := range map[string]struct {
		workers int
		latency time.Duration
	}{
		"50 workers, 30 ms":  {50, 30 * time.Millisecond},
		"100 workers, 15 ms": {100, 15 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			// What the bucket cannot hold while a busy machine stalls is lost, so the
			// lower bound gets more than one chance. The upper one holds every time.
			most := 0
			for range 4 {
				got := flood(t, c.workers, c.latency, window, ratelimit.PerKey(limit, burst))
				t.Logf("%d calls in %v, bound %d", got, window, bound)
				if got > bound {
					t.Errorf("%d calls in %v, want at most %d", got, window, bound)
				}
				if most = max(most, got); most >= bound*3/4 {
					return
				}
			}
			t.Errorf("at best %d calls in %v, want about %d", most, window, bound)
		})
	}
}

// flood lets workers call a server as fast as they may, and returns how many calls
// arrived within the window. It begins before the first call: a call arrives later
// than it was let go, never earlier, so the bound is exact.
func flood(t *testing.T, workers int, latency, window time.Duration, limit ratelimit.Limiter) int {
	url, before := arrivals(t, latency)
	rt := outbound.MustNew(outbound.Options{Base: &http.Transport{MaxIdleConnsPerHost: workers}, Rate: limit})
	defer rt.CloseIdleConnections()
	client := &http.Client{Transport: rt}
	end := time.Now().Add(window)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for time.Now().Before(end) {
				resp, err := client.Get(url)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	return before(end)
}

func TestNothingIsLeftBehind(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/throttled":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/slow":
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "body")
	}))
	defer server.Close()
	conns := &atomic.Int64{}
	base := &http.Transport{}
	before := runtime.NumGoroutine()
	o := everything(base)
	o.AttemptTimeout, o.Retry.Attempts, o.Rate = 20*time.Millisecond, 2, ratelimit.PerKey(2000, 50)
	o.Retry.MaxBackoff, o.InFlight = 10*time.Millisecond, shed.Fixed(8)
	rt := outbound.MustNew(o)
	client := &http.Client{Transport: rt, Timeout: 200 * time.Millisecond}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 12 {
				resp, err := client.Get(server.URL + [...]string{"/", "/throttled", "/slow"}[(i+j)%3])
				if err != nil {
					continue
				}
				if j%2 == 0 {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				resp.Body.Close()
				conns.Add(1)
			}
		})
	}
	wg.Wait()
	rt.CloseIdleConnections()
	server.CloseClientConnections()
	if conns.Load() == 0 {
		t.Fatal("nothing was answered")
	}
	for _, s := range rt.Stats().Services {
		if s.Slots.InFlight != 0 || s.Slots.Waiting != [4]int{} {
			t.Errorf("slots: %+v", s.Slots)
		}
	}
	for _, op := range rt.Stats().Operations {
		if op.InFlight != 0 || op.Waiting != 0 {
			t.Errorf("operation: %+v", op)
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+2 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+2 {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before\n%s", n, before, buf[:runtime.Stack(buf, true)])
	}
}

func TestAllocationsOfASuccessfulAttempt(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates too; only the bound is checked without it")
		return
	}
	req := newRequest(t, "http://service.test/")
	per := func(rt http.RoundTripper) float64 {
		return testing.AllocsPerRun(200, func() { call(t, rt, req) })
	}
	bare := per(stacks[0].over(tripper(idle)))
	for i, most := range []float64{1: 6, 2: 16} {
		if i == 0 {
			continue
		}
		if added := per(stacks[i].over(tripper(idle))) - bare; added > most {
			t.Errorf("%s adds %v allocations, want at most %v", stacks[i].name, added, most)
		}
	}
}
