package outbound_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
)

// counting stands in for a breaker: it counts what it is told, the way a library
// does that was given the helpers.
type counting struct{ success, failure, excluded int }

func (c *counting) execute(call func() (*http.Response, error)) (*http.Response, error) {
	resp, err := call()
	switch {
	case outbound.IsExcluded(err):
		c.excluded++
	case outbound.IsSuccessful(err):
		c.success++
	default:
		c.failure++
	}
	return resp, err
}

// guarded is a transport with a breaker and without retries.
func guarded(base http.RoundTripper, b outbound.Breaker) http.RoundTripper {
	return outbound.MustNew(outbound.Options{
		Base: base, Retry: outbound.RetryOptions{Attempts: 1},
		Breaker: func(*http.Request) outbound.Breaker { return b },
	})
}

func TestWhatABreakerIsTold(t *testing.T) {
	const success, failure, excluded = "success", "failure", "excluded"
	closed, halfOpen := func() bool { return false }, func() bool { return true }
	status := func(s int) tripper {
		return func(r *http.Request) (*http.Response, error) { return answer(r, s), nil }
	}
	fails := func(err error) tripper {
		return func(*http.Request) (*http.Response, error) { return nil, err }
	}
	for name, c := range map[string]struct {
		base tripper
		b    outbound.Breaker
		want string
	}{
		"well":                     {status(200), outbound.Breaker{}, success},
		"not found":                {status(404), outbound.Breaker{}, success},
		"fault":                    {status(500), outbound.Breaker{}, failure},
		"connection lost":          {fails(errors.New("reset")), outbound.Breaker{}, failure},
		"throttle":                 {status(429), outbound.Breaker{}, success},
		"throttle, closed":         {status(429), outbound.Breaker{HalfOpen: closed}, excluded},
		"throttle, half-open":      {status(429), outbound.Breaker{HalfOpen: halfOpen}, success},
		"overload":                 {status(503), outbound.Breaker{}, success},
		"overload, closed":         {status(503), outbound.Breaker{HalfOpen: closed}, excluded},
		"overload, half-open":      {status(503), outbound.Breaker{HalfOpen: halfOpen}, success},
		"overload that counts":     {status(503), outbound.Breaker{CountOverload: true}, failure},
		"the caller gave up":       {fails(context.Canceled), outbound.Breaker{}, excluded},
		"not sent by a local rule": {fails(&pacer.Refusal{Reason: pacer.Paused}), outbound.Breaker{}, excluded},
	} {
		t.Run(name, func(t *testing.T) {
			told := &counting{}
			c.b.Execute = told.execute
			rt := guarded(c.base, c.b)
			req, _ := http.NewRequest(http.MethodGet, "http://service.test/", nil)
			resp, err := rt.RoundTrip(req)
			wantResp, wantErr := c.base(req)
			if !errors.Is(err, wantErr) || (resp == nil) != (wantResp == nil) || resp != nil && resp.StatusCode != wantResp.StatusCode {
				t.Errorf("the caller got %v, %v; want %v, %v", resp, err, wantResp, wantErr)
			}
			want := map[string]counting{success: {success: 1}, failure: {failure: 1}, excluded: {excluded: 1}}[c.want]
			if *told != want {
				t.Errorf("told %+v, want %v", *told, c.want)
			}
		})
	}
}

func TestWhatTheBreakerRefusesIsCountedAndObserved(t *testing.T) {
	open := errors.New("circuit is open")
	seen := &recorder{}
	rt := outbound.MustNew(outbound.Options{
		Base: tripper(idle), Observer: seen,
		Breaker: func(*http.Request) outbound.Breaker {
			return outbound.Breaker{Execute: func(func() (*http.Response, error)) (*http.Response, error) { return nil, open }}
		},
	})
	if _, err := rt.RoundTrip(newRequest(t, "http://service.test/")); !errors.Is(err, open) {
		t.Fatal(err)
	}
	if o := operation(t, rt); o.Refused[pacer.BreakerOpen] != 1 || o.Attempts != 0 {
		t.Errorf("%+v", o)
	}
	if types := seen.types(); len(types) != 2 || types[0] != outbound.EventRefused || seen.events[0].Reason != pacer.BreakerOpen {
		t.Errorf("observed %+v", seen.events)
	}
}

func TestIsFailureFitsFailsafe(t *testing.T) {
	for status, want := range map[int]bool{200: false, 404: false, 429: false, 503: false, 500: true, 502: true} {
		if got := outbound.IsFailure(answer(nil, status), nil); got != want {
			t.Errorf("status %d: %v", status, got)
		}
	}
	if outbound.IsFailure(nil, nil) || outbound.IsFailure(nil, context.Canceled) || !outbound.IsFailure(nil, errors.New("reset")) {
		t.Error("errors")
	}
}

func TestNoBreakerIsNone(t *testing.T) {
	rt := guarded(tripper(idle), outbound.Breaker{})
	call(t, rt, newRequest(t, "http://service.test/"))
}
