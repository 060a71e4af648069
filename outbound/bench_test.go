package outbound_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// The same two stacks, over a base that does nothing and over net/http.
var stacks = []struct {
	name string
	over func(base http.RoundTripper) http.RoundTripper
}{
	{"base", func(base http.RoundTripper) http.RoundTripper { return base }},
	{"transport", func(base http.RoundTripper) http.RoundTripper {
		return outbound.MustNew(outbound.Options{Base: base, Rate: ratelimit.PerKey(1e6, 1e6), InFlight: shed.Fixed(10)})
	}},
	{"everything", func(base http.RoundTripper) http.RoundTripper {
		return outbound.MustNew(everything(base))
	}},
}

func everything(base http.RoundTripper) outbound.Options {
	return outbound.Options{
		Base: base, Rate: ratelimit.PerKey(1e6, 1e6), InFlight: shed.Fixed(10), CountResends: true, AttemptTimeout: 1e9,
		Breaker: func(*http.Request) outbound.Breaker {
			return outbound.Breaker{Execute: func(call func() (*http.Response, error)) (*http.Response, error) { return call() }}
		},
	}
}

func call(tb testing.TB, rt http.RoundTripper, req *http.Request) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		tb.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		tb.Fatal(resp.StatusCode, err)
	}
}

func idle(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: r.Header, Request: r, Body: io.NopCloser(strings.NewReader("body"))}, nil
}

func newRequest(tb testing.TB, url string) *http.Request {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "bench")
	return req
}

func BenchmarkOverhead(b *testing.B) {
	req := newRequest(b, "http://service.test/")
	for _, s := range stacks {
		rt := s.over(tripper(idle))
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b, rt, req)
			}
		})
	}
}

func BenchmarkLoopback(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {}))
	defer server.Close()
	req := newRequest(b, server.URL)
	for _, s := range stacks {
		rt := s.over(http.DefaultTransport)
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call(b, rt, req)
			}
		})
	}
}
