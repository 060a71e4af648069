package admission_test

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

const bothSets = admission.IETFDraft11 | admission.XRateLimit

// seconds reads a header that must hold whole seconds or a whole number, once.
func seconds(t *testing.T, h http.Header, name string) int {
	t.Helper()
	values := h.Values(name)
	if len(values) != 1 || !regexp.MustCompile(`^\d+$`).MatchString(values[0]) {
		t.Errorf("%s = %q, want one whole number", name, values)
		return -1
	}
	n, _ := strconv.Atoi(values[0])
	return n
}

// Retry-After is digits only, at least 1.
//
// Case RL-01: from reports about limits and their headers in other limiters
func TestRetryAfterIsWholeSecondsAndAtLeastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(10, 1)}).Handler(okHandler())
		if w := get(h); w.Code != http.StatusOK {
			t.Errorf("first: %d", w.Code)
		}
		w := get(h)
		mustRefuse(t, w, http.StatusTooManyRequests, shed.RateLimited)
		if n := seconds(t, w.Header(), "Retry-After"); n != 1 {
			t.Errorf("Retry-After = %d, want 1", n)
		}
	})
}

// Remaining goes down by one a request, errors included, and each field appears once.
//
// Case RL-16: from reports about limits and their headers in other limiters
func TestRemainingCountsRequestsWhateverTheyAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(1.0/60, 5), HTTP: admission.HTTP{RateLimitHeaders: bothSets}})
		served := 0
		w := newWire(t, g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served++
			switch served {
			case 3:
				http.NotFound(w, r)
			case 4:
				http.Error(w, "broken", http.StatusInternalServerError)
			}
		})), nil)
		for i, want := range []struct{ status, left int }{{200, 4}, {200, 3}, {404, 2}, {500, 1}, {200, 0}, {429, 0}} {
			res := w.get(t, "/")
			if res.StatusCode != want.status {
				t.Errorf("request %d: %d, want %d", i+1, res.StatusCode, want.status)
			}
			if left := seconds(t, res.Header, "X-RateLimit-Remaining"); left != want.left {
				t.Errorf("request %d: %d left, want %d", i+1, left, want.left)
			}
			for _, name := range []string{"RateLimit", "RateLimit-Policy", "X-RateLimit-Limit", "X-RateLimit-Reset"} {
				if n := len(res.Header.Values(name)); n != 1 {
					t.Errorf("request %d: %s appears %d times", i+1, name, n)
				}
			}
		}
		if served != 5 {
			t.Errorf("%d reached the handler, want 5", served)
		}
	})
}

// Reset is whole seconds from now and agrees with Retry-After.
//
// Case RL-18: from reports about limits and their headers in other limiters
func TestResetIsSecondsFromNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := admission.MustNew(admission.Options{
			Rate: ratelimit.PerKey(rate.Limit(10.0/60), 10), HTTP: admission.HTTP{RateLimitHeaders: bothSets},
		}).Handler(okHandler())
		statuses := map[int]int{}
		for range 200 {
			w := get(h)
			statuses[w.Code]++
			reset := seconds(t, w.Header(), "X-RateLimit-Reset")
			if reset > 60 {
				t.Errorf("%d: reset in %d s, want at most 60", w.Code, reset)
			}
			if w.Code == http.StatusTooManyRequests {
				if after := seconds(t, w.Header(), "Retry-After"); after < reset-1 || after > reset+1 {
					t.Errorf("Retry-After %d, reset in %d", after, reset)
				}
			}
			time.Sleep(1700 * time.Millisecond) // fake
		}
		if statuses[200] < 60 || statuses[429] < 100 {
			t.Errorf("statuses %v: want many of both", statuses)
		}
	})
}

// allowOrigin is a CORS handler, outside the gate as it should be.
func allowOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
		next.ServeHTTP(w, r)
	})
}

// A preflight takes no token of the caller, and a refusal keeps the CORS headers set outside.
//
// Case RL-20: from reports about limits and their headers in other limiters
func TestPreflightsCostTheCallerNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := admission.MustNew(admission.Options{
			Rate: ratelimit.PerKey(1.0/60, 20), Address: ratelimit.PerKey(1.0/60, 30), Quota: ratelimit.PerKey(0, 30),
		})
		h := allowOrigin(gate.Handler(okHandler()))
		const origin = "https://app.example"
		for i := range 21 {
			w := do(h, request("OPTIONS", "/", "Origin", origin, "Access-Control-Request-Method", "GET"))
			if w.Code != http.StatusOK {
				t.Errorf("preflight %d: %d", i+1, w.Code)
			}
			w = do(h, request("GET", "/", "Origin", origin))
			if i < 20 {
				if w.Code != http.StatusOK {
					t.Errorf("GET %d: %d", i+1, w.Code)
				}
				continue
			}
			mustRefuse(t, w, http.StatusTooManyRequests, shed.RateLimited)
			if w.Header().Get("Access-Control-Allow-Origin") != origin || w.Header().Get("Access-Control-Expose-Headers") == "" {
				t.Errorf("the refusal lost the CORS headers: %v", w.Header())
			}
		}
	})
}
