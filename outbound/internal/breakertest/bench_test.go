package breakertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/timeout"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Like beside like: retries, a rate out of reach, a cap on calls in flight; and
// the same with a time limit per attempt.
var peers = []struct {
	name string
	over func(http.RoundTripper) http.RoundTripper
}{
	{"bare", func(base http.RoundTripper) http.RoundTripper { return base }},
	{"headgate", func(base http.RoundTripper) http.RoundTripper {
		return outbound.MustNew(outbound.Options{Base: base, Rate: ratelimit.PerKey(1e6, 1e6), InFlight: shed.Fixed(10)})
	}},
	{"failsafe", func(base http.RoundTripper) http.RoundTripper {
		return failsafehttp.NewRoundTripper(base, failsafePolicies()...)
	}},
	{"headgate-timeout", func(base http.RoundTripper) http.RoundTripper {
		return outbound.MustNew(outbound.Options{
			Base: base, Rate: ratelimit.PerKey(1e6, 1e6), InFlight: shed.Fixed(10),
			AttemptTimeout: time.Second, CountResends: true,
		})
	}},
	{"failsafe-timeout", func(base http.RoundTripper) http.RoundTripper {
		return failsafehttp.NewRoundTripper(base, append(failsafePolicies(), timeout.New[*http.Response](time.Second))...)
	}},
}

func failsafePolicies() []failsafe.Policy[*http.Response] {
	return []failsafe.Policy[*http.Response]{
		failsafehttp.NewRetryPolicyBuilder().Build(),
		ratelimiter.NewBursty[*http.Response](1e6, time.Second),
		bulkhead.New[*http.Response](10),
	}
}

func idle(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: r.Header, Request: r, Body: io.NopCloser(strings.NewReader("body"))}, nil
}

func BenchmarkPeers(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	for _, base := range []struct {
		name string
		rt   http.RoundTripper
	}{{"idle", tripper(idle)}, {"loopback", http.DefaultTransport}} {
		for _, p := range peers {
			rt := p.over(base.rt)
			b.Run(base.name+"/"+p.name, func(b *testing.B) {
				req, err := http.NewRequest(http.MethodGet, server.URL, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					resp, err := rt.RoundTrip(req)
					if err != nil || resp.StatusCode != 200 {
						b.Fatal(resp, err)
					}
					if _, err := io.Copy(io.Discard, resp.Body); err != nil {
						b.Fatal(err)
					}
					resp.Body.Close()
				}
			})
		}
	}
}
