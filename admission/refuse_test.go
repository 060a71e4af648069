package admission_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// A service may write its refusals itself; what makes a refusal one stays the gate's
// unless the service says otherwise.
func TestRefusalsOfTheServicesOwn(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(http.ResponseWriter, *http.Request, admission.Rejection)
		status int
		body   string
		header map[string]string
	}{
		"a body": {func(w http.ResponseWriter, r *http.Request, rej admission.Rejection) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"path":%q,"why":%q,"after":"%v"}`, r.URL.Path, rej.Reason, rej.RetryAfter)
		}, 429, `{"path":"/x","why":"headgate: rate-limited","after":"10s"}`, map[string]string{"Content-Type": "application/json", "Retry-After": "10", "Cache-Control": "no-store"}},
		"nothing":        {func(http.ResponseWriter, *http.Request, admission.Rejection) {}, 429, "", map[string]string{"Retry-After": "10"}},
		"a header alone": {func(w http.ResponseWriter, _ *http.Request, _ admission.Rejection) { w.Header().Set("X-Own", "1") }, 429, "", map[string]string{"X-Own": "1"}},
		"another status": {func(w http.ResponseWriter, _ *http.Request, _ admission.Rejection) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "short and stout")
		}, 418, "short and stout", map[string]string{"Retry-After": "10"}},
		"other headers": {func(w http.ResponseWriter, _ *http.Request, _ admission.Rejection) {
			w.Header().Set("Retry-After", "99")
			w.Header().Set("Cache-Control", "private")
		}, 429, "", map[string]string{"Retry-After": "99", "Cache-Control": "private"}},
		"a flush": {func(w http.ResponseWriter, _ *http.Request, _ admission.Rejection) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				panic(err)
			}
			_, _ = io.WriteString(w, "later")
		}, 429, "later", nil},
		"early hints": {func(w http.ResponseWriter, _ *http.Request, _ admission.Rejection) {
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "then")
		}, 429, "then", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0.1, 1), HTTP: admission.HTTP{Refuse: c.refuse, RateLimitHeaders: admission.XRateLimit}})
				w := newWire(t, g.Handler(okHandler()), nil)
				w.get(t, "/x")
				res, err := w.Get("http://service/x")
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != c.status || string(body) != c.body {
					t.Errorf("%d %q, %v; want %d %q", res.StatusCode, body, err, c.status, c.body)
				}
				if res.Header.Get("Headgate-Reason") != "rate-limited" || res.Header.Get("X-Ratelimit-Remaining") != "0" {
					t.Errorf("headers %v", res.Header)
				}
				for name, want := range c.header {
					if got := res.Header.Get(name); got != want {
						t.Errorf("%s = %q, want %q", name, got, want)
					}
				}
				atRest(t, g)
			})
		})
	}
}

func TestRefuseIsAskedForEveryReasonAndNeverForAnAdmittedRequest(t *testing.T) {
	var seen []shed.Reason
	g := admission.MustNew(admission.Options{Identify: refuseTwice(), HTTP: admission.HTTP{
		Refuse: func(_ http.ResponseWriter, _ *http.Request, rej admission.Rejection) { seen = append(seen, rej.Reason) },
	}})
	h := g.Handler(okHandler())
	for _, want := range []int{403, 503, 200} {
		if w := get(h); w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
	_ = g.Close()
	get(h)
	if !slices.Equal(seen, []shed.Reason{shed.Unidentified, shed.LimiterUnavailable, shed.Draining}) {
		t.Errorf("asked for %v", seen)
	}
}

// refuseTwice refuses the first caller as unidentified and the second as it says itself.
func refuseTwice() func(*http.Request) (caller.Caller, error) {
	n := 0
	return func(*http.Request) (caller.Caller, error) {
		switch n++; n {
		case 1:
			return caller.Caller{}, errors.New("who?")
		case 2:
			return caller.Caller{}, &admission.Rejection{Reason: shed.LimiterUnavailable, RetryAfter: time.Second}
		}
		return caller.Caller{}, nil
	}
}

// A *Rejection that is nil is an error all the same, as Go has it.
func TestANilRejectionIsUnidentified(t *testing.T) {
	var none *admission.Rejection
	g := admission.MustNew(admission.Options{Identify: func(*http.Request) (caller.Caller, error) { return caller.Caller{}, none }})
	if w := get(g.Handler(okHandler())); w.Code != http.StatusForbidden {
		t.Errorf("%d, want 403", w.Code)
	}
}
