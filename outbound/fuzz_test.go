package outbound_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// Whatever a server sends, a verdict is one of the known ones, its hint is not
// negative, and the body is handed on as it came.
func FuzzVerdict(f *testing.F) {
	f.Add(429, "Headgate-Reason", "queue-full", `{"error":{"code":"insufficient_quota"}}`)
	f.Add(400, "X-Amzn-ErrorType", "com.amazon#SlowDown:x", `<Error><Code>SlowDown</Code></Error>`)
	f.Add(403, "X-RateLimit-Reset", "99999999999", `{"message":"secondary rate limit","retry_after":1e300}`)
	f.Add(200, "Retry-After", "-0", `{"errors":[{"extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":1e308}}}`)
	f.Fuzz(func(t *testing.T, status int, field, value, body string) {
		resp := &http.Response{
			StatusCode: status, Body: io.NopCloser(strings.NewReader(body)),
			Header: http.Header{http.CanonicalHeaderKey(field): {value}, "X-Ratelimit-Remaining": {"0"}, "Content-Encoding": {value}},
		}
		v := verdictOf(resp, outbound.GraphQL, outbound.Bodies)
		if int(v.Kind) >= verdict.KindCount || v.Hint < 0 || v.Hint > 0 && !v.Hinted || v.Reason.String() == "unknown" {
			t.Fatalf("%+v", v)
		}
		if left, err := io.ReadAll(resp.Body); err != nil || string(left) != body {
			t.Fatalf("%d bytes left of %d, %v", len(left), len(body), err)
		}
	})
}
