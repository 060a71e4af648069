package migrating

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/httprate"
)

func ok(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }

// slow holds its slot for a second.
func slow(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Second):
		io.WriteString(w, "done")
	case <-r.Context().Done():
	}
}

// ask sends one request that came through a proxy at 10.0.0.1.
func ask(h http.Handler, method, path, client string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", client)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// admitted returns how many of n requests in a row are let through, and the first
// refusal.
func admitted(h http.Handler, n int, method, path, client string) (count int, refusal *http.Response) {
	for range n {
		switch resp := ask(h, method, path, client); {
		case resp.StatusCode == http.StatusOK:
			count++
		case refusal == nil:
			refusal = resp
		}
	}
	return count, refusal
}

// together sends n requests at once and counts the statuses.
func together(h http.Handler, n int, method, path string) map[int]int {
	statuses := map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			resp := ask(h, method, path, "192.0.2."+strconv.Itoa(i%250))
			mu.Lock()
			statuses[resp.StatusCode]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return statuses
}

func retryAfter(t *testing.T, resp *http.Response) int {
	t.Helper()
	if resp == nil {
		t.Fatal("nobody was refused")
	}
	n, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || n < 1 {
		t.Errorf("Retry-After = %q", resp.Header.Get("Retry-After"))
	}
	return n
}

func TestHTTPRateBothLimitEachClient(t *testing.T) {
	for name, build := range map[string]func(http.HandlerFunc) http.Handler{"before": httprateBefore, "after": httprateAfter} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(ok)
				n, refusal := admitted(h, 120, "GET", "/search", "192.0.2.1")
				if n != 100 || refusal.StatusCode != http.StatusTooManyRequests || refusal.Header.Get("X-RateLimit-Limit") != "100" {
					t.Errorf("%d admitted, then %v", n, refusal)
				}
				if other := ask(h, "GET", "/search", "192.0.2.2"); other.StatusCode != http.StatusOK {
					t.Errorf("another client got %d", other.StatusCode)
				}
				if wait, want := retryAfter(t, refusal), map[string]int{"before": 60, "after": 1}[name]; wait != want {
					t.Errorf("told to wait %d s, want %d", wait, want)
				}
			})
		})
	}
}

// TestRetryAfterIsWhenTheNextRequestPasses: a window lets everybody wait for its
// end, a bucket for one token.
func TestRetryAfterIsWhenTheNextRequestPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := httprateAfter(ok)
		_, refusal := admitted(h, 101, "GET", "/search", "192.0.2.1")
		wait := retryAfter(t, refusal)
		time.Sleep(time.Duration(wait) * time.Second)
		if resp := ask(h, "GET", "/search", "192.0.2.1"); wait != 1 || resp.StatusCode != http.StatusOK {
			t.Errorf("after %d s: %d", wait, resp.StatusCode)
		}
	})
}

func TestQuotasShareACounter(t *testing.T) {
	counter := httprate.NewLocalLimitCounter(24 * time.Hour)
	counter.Config(10_000, 24*time.Hour)
	byUser := func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	before, after := quotaBefore(counter, byUser)(http.HandlerFunc(ok)), quotaAfter(counter, byUser).Handler(http.HandlerFunc(ok))
	for name, h := range map[string]http.Handler{"before": before, "after": after} {
		if resp := ask(h, "GET", "/", "192.0.2.1"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}

func TestThrottleBoundsWorkAndBacklog(t *testing.T) {
	for name, c := range map[string]struct {
		build   func(a, b http.HandlerFunc) http.Handler
		refused int
	}{
		"before": {throttleBefore, http.StatusTooManyRequests},
		"same":   {throttleSame, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := together(c.build(slow, slow), 64+1024+10, "POST", "/checkout")
				// 64 at a time for a second each: 640 before the tenth second ends the wait.
				if got[http.StatusOK] < 640 || got[http.StatusOK] > 704 || got[http.StatusOK]+got[c.refused] != 64+1024+10 {
					t.Errorf("statuses %v", got)
				}
			})
		})
	}
}

// TestAfterThrottleCheckoutGoesFirst fills the house with exports.
func TestAfterThrottleCheckoutGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(100 * time.Millisecond)
			io.WriteString(w, "done")
		}
		h := throttleAfter(quick, quick)
		var exports map[int]int
		var wg sync.WaitGroup
		wg.Go(func() { exports = together(h, 300, "GET", "/export") })
		synctest.Wait()
		checkouts := together(h, 20, "POST", "/checkout")
		wg.Wait()
		if checkouts[http.StatusOK] != 20 || exports[http.StatusServiceUnavailable] == 0 {
			t.Errorf("checkouts %v, exports %v", checkouts, exports)
		}
	})
}

func TestAfterThrottleExpiredWorkIsNotStarted(t *testing.T) {
	h := throttleAfter(ok, ok)
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/checkout", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
}

func TestTollboothBothLimitTheLogin(t *testing.T) {
	for name, build := range map[string]func(a, b http.HandlerFunc) http.Handler{"before": tollboothBefore, "after": tollboothAfter} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := build(ok, ok)
				n, refusal := admitted(h, 10, "POST", "/login", "192.0.2.1")
				if n != 5 || refusal.StatusCode != http.StatusTooManyRequests {
					t.Errorf("%d logins, then %v", n, refusal)
				}
				if n, _ := admitted(h, 10, "GET", "/search", "192.0.2.1"); n != 10 {
					t.Errorf("%d searches", n)
				}
				if name == "after" {
					retryAfter(t, refusal)
				}
			})
		})
	}
}

// TestTollboothLetsThroughWhoeverHasNoAddress: what the page warns of.
func TestTollboothLetsThroughWhoeverHasNoAddress(t *testing.T) {
	for name, c := range map[string]struct {
		h    http.Handler
		want int
	}{"before": {tollboothBefore(ok, ok), 10}, "after": {tollboothAfter(ok, ok), 5}} {
		n := 0
		for range 10 {
			r := httptest.NewRequest("POST", "/login", nil)
			w := httptest.NewRecorder()
			if c.h.ServeHTTP(w, r); w.Code == http.StatusOK {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%s: %d logins without the header, want %d", name, n, c.want)
		}
	}
}
