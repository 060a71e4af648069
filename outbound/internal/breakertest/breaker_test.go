// Package breakertest holds outbound's breaker helpers to the libraries they are
// made for, in a module of its own so that users inherit none of them.
package breakertest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/ratelimit"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// service answers with whatever status it is set to.
type service struct{ status int }

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.status == 0 {
		return nil, errors.New("connection reset by peer")
	}
	return &http.Response{StatusCode: s.status, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader("body"))}, nil
}

func newGobreaker() *gobreaker.CircuitBreaker[*http.Response] {
	return gobreaker.NewCircuitBreaker[*http.Response](gobreaker.Settings{
		Timeout:      20 * time.Millisecond,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 },
		IsSuccessful: outbound.IsSuccessful,
		IsExcluded:   outbound.IsExcluded,
	})
}

func transport(base http.RoundTripper, b outbound.Breaker) http.RoundTripper {
	return outbound.MustNew(outbound.Options{
		Base: base, Rate: ratelimit.PerKey(1e6, 1e6), Retry: outbound.RetryOptions{Attempts: 1},
		Breaker: func(*http.Request) outbound.Breaker { return b },
	})
}

func call(t *testing.T, rt http.RoundTripper) (int, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://service.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "body" {
		t.Errorf("body %q, %v", text, err)
	}
	return resp.StatusCode, nil
}

func TestGobreakerOpensOnFaultsAndNeverOnThrottles(t *testing.T) {
	for _, exact := range []bool{false, true} {
		cb, s := newGobreaker(), &service{}
		b := outbound.Breaker{Execute: cb.Execute}
		if exact {
			b.HalfOpen = func() bool { return cb.State() == gobreaker.StateHalfOpen }
		}
		rt := transport(s, b)
		for _, s.status = range []int{429, 503, 404} {
			for range 20 {
				if status, err := call(t, rt); status != s.status || err != nil {
					t.Fatal(status, err)
				}
			}
		}
		if cb.State() != gobreaker.StateClosed {
			t.Fatalf("exact %v: throttles opened it", exact)
		}
		s.status = 500
		for range 5 {
			if status, err := call(t, rt); status != 500 || err != nil {
				t.Fatal(status, err) // the caller gets the answer, whatever the breaker got
			}
		}
		if cb.State() != gobreaker.StateOpen {
			t.Fatalf("exact %v: faults did not open it", exact)
		}
		_, err := call(t, rt)
		var r *pacer.Refusal
		if !errors.As(err, &r) || r.Reason != pacer.BreakerOpen || !errors.Is(err, gobreaker.ErrOpenState) {
			t.Errorf("refused with %v", err)
		}
	}
}

func TestThrottlesDoNotHideARowOfFaults(t *testing.T) {
	cb, s := newGobreaker(), &service{}
	rt := transport(s, outbound.Breaker{
		Execute:  cb.Execute,
		HalfOpen: func() bool { return cb.State() == gobreaker.StateHalfOpen },
	})
	for range 5 {
		for _, s.status = range []int{500, 429} {
			if _, err := call(t, rt); err != nil && !errors.Is(err, gobreaker.ErrOpenState) {
				t.Fatal(err)
			}
		}
	}
	if cb.State() != gobreaker.StateOpen {
		t.Errorf("five faults with throttles between them left it %v", cb.State())
	}
}

// The exclusion of gobreaker frees the probe's place and adds no success: a breaker
// that gets only throttles would stay half-open.
func TestABreakerThatGetsOnlyThrottlesCloses(t *testing.T) {
	cb, s := newGobreaker(), &service{}
	rt := transport(s, outbound.Breaker{
		Execute:  cb.Execute,
		HalfOpen: func() bool { return cb.State() == gobreaker.StateHalfOpen },
	})
	for range 5 { // status 0: no connection
		if _, err := call(t, rt); err == nil {
			t.Fatal("no error")
		}
	}
	if cb.State() != gobreaker.StateOpen {
		t.Fatal(cb.State())
	}
	for deadline := time.Now().Add(5 * time.Second); cb.State() != gobreaker.StateHalfOpen; {
		if time.Now().After(deadline) {
			t.Fatal("never half-open")
		}
	}
	s.status = 429
	if status, err := call(t, rt); status != 429 || err != nil {
		t.Fatal(status, err)
	}
	if cb.State() != gobreaker.StateClosed {
		t.Errorf("still %v after an answer", cb.State())
	}
}

func TestFailsafeOpensOnFaultsAndNeverOnThrottles(t *testing.T) {
	cb := circuitbreaker.NewBuilder[*http.Response]().HandleIf(outbound.IsFailure).WithFailureThreshold(5).Build()
	s := &service{}
	rt := transport(s, outbound.Breaker{Execute: failsafe.With(cb).Get})
	for _, s.status = range []int{429, 503, 404} {
		for range 20 {
			if status, err := call(t, rt); status != s.status || err != nil {
				t.Fatal(status, err)
			}
		}
	}
	if !cb.IsClosed() {
		t.Fatal("throttles opened it")
	}
	s.status = 500
	for range 5 {
		if status, err := call(t, rt); status != 500 || err != nil {
			t.Fatal(status, err)
		}
	}
	_, err := call(t, rt)
	var r *pacer.Refusal
	if !cb.IsOpen() || !errors.As(err, &r) || r.Reason != pacer.BreakerOpen || !errors.Is(err, circuitbreaker.ErrOpen) {
		t.Errorf("open: %v, refused with %v", cb.IsOpen(), err)
	}
}

// Alone, without the Break part, the helper reads responses too.
func TestFailsafeAlone(t *testing.T) {
	cb := circuitbreaker.NewBuilder[*http.Response]().HandleIf(outbound.IsFailure).WithFailureThreshold(3).Build()
	for status, open := range map[int]bool{429: false, 500: true} {
		cb.Close()
		for range 3 {
			resp, err := failsafe.With(cb).Get(func() (*http.Response, error) {
				return (&service{status}).RoundTrip(nil)
			})
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		if cb.IsOpen() != open {
			t.Errorf("after three times %d: open is %v", status, cb.IsOpen())
		}
	}
}
