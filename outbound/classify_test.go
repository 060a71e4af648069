package outbound_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/shed"
)

func TestClassifyResponses(t *testing.T) {
	const (
		ok        = verdict.OK
		throttled = verdict.Throttled
		overload  = verdict.Overloaded
		quota     = verdict.QuotaExhausted
		conflict  = verdict.Conflict
		transient = verdict.Transient
		permanent = verdict.Permanent

		forGood = 10 * 365 * 24 * time.Hour // over every cap
	)
	for _, c := range []struct {
		name   string
		status int
		fields []string
		body   string // looked into when not empty
		want   verdict.Kind
		hint   time.Duration // -1: any, and it must be there; 0: none
		wide   bool
	}{
		{name: "well", status: 200, want: ok},
		{name: "redirect", status: 301, fields: []string{"Retry-After", "5"}, want: ok},
		{name: "not found", status: 404, want: permanent},
		{name: "conflict, no one's", status: 409, want: permanent},
		{name: "request timeout", status: 408, want: transient},
		{name: "fault", status: 500, want: transient},
		{name: "not implemented", status: 501, want: permanent},
		{name: "gateway", status: 502, want: transient},
		{name: "bare 503", status: 503, want: overload},
		{name: "503 with hint", status: 503, fields: []string{"Retry-After", "3"}, want: overload, hint: 3 * time.Second},
		{name: "gateway timeout", status: 504, want: transient},
		{name: "edge without origin", status: 522, want: transient},
		{name: "529", status: 529, want: overload},
		{name: "bare 429", status: 429, want: throttled},

		{name: "AWS with 400", status: 400, fields: []string{"X-Amzn-ErrorType", "ThrottlingException"}, want: throttled},
		{name: "AWS, dressed up", status: 400, fields: []string{"X-Amzn-ErrorType", "com.amazonaws#ProvisionedThroughputExceededException:http://x/", "X-Amz-Retry-After", "1500"}, want: throttled, hint: 1500 * time.Millisecond},
		{name: "AWS resource quota", status: 409, fields: []string{"X-Amzn-ErrorType", "LimitExceededException"}, want: quota},
		{name: "AWS validation", status: 400, fields: []string{"X-Amzn-ErrorType", "ValidationException"}, want: permanent},
		{name: "AWS in JSON", status: 400, body: `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}`, want: throttled},
		{name: "S3", status: 503, body: `<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>`, want: throttled},

		{name: "Google quota of a day", status: 403, body: `{"error":{"code":403,"errors":[{"reason":"dailyLimitExceeded"}]}}`, want: quota},
		{name: "Google rate", status: 403, body: `{"error":{"code":403,"errors":[{"reason":"userRateLimitExceeded"}]}}`, want: throttled},
		{name: "Google retry delay", status: 429, body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"t/ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"},{"@type":"t/RetryInfo","retryDelay":"3.5s"}]}}`, want: throttled, hint: 3500 * time.Millisecond},
		{name: "Google permission", status: 403, body: `{"error":{"code":403,"errors":[{"reason":"forbidden"}]}}`, want: permanent},

		{name: "Azure busy", status: 503, fields: []string{"x-ms-error-code", "ServerBusy"}, want: throttled},
		{name: "Azure Cosmos", status: 429, fields: []string{"x-ms-retry-after-ms", "40"}, want: throttled, hint: 40 * time.Millisecond},
		{name: "Azure quota", status: 409, fields: []string{"x-ms-error-code", "AccountQuotaExceeded"}, want: quota},

		{name: "Stripe conflict", status: 409, fields: []string{"Stripe-Version", "2026-01-01"}, want: conflict},
		{name: "Stripe says retry", status: 409, fields: []string{"Stripe-Should-Retry", "true"}, want: conflict},
		{name: "Stripe lock", status: 429, body: `{"error":{"code":"lock_timeout","type":"invalid_request_error"}}`, want: conflict},
		{name: "Stripe rate", status: 429, body: `{"error":{"code":"rate_limit"}}`, want: throttled},

		{name: "GitHub primary", status: 403, fields: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"}, want: throttled, hint: time.Minute, wide: true},
		{name: "GitHub with hint", status: 403, fields: []string{"Retry-After", "30"}, want: throttled, hint: 30 * time.Second},
		{name: "GitHub 429 without", status: 429, fields: []string{"X-GitHub-Request-Id", "A"}, want: throttled, hint: time.Minute, wide: true},
		{name: "GitHub secondary", status: 403, body: `{"message":"You have exceeded a secondary rate limit."}`, want: throttled, hint: time.Minute, wide: true},
		{name: "GitHub permission", status: 403, fields: []string{"X-RateLimit-Remaining", "4999"}, body: `{"message":"Must have admin rights"}`, want: permanent},

		{name: "Cloudflare limit", status: 429, fields: []string{"CF-Ray", "a", "Retry-After", "30"}, want: throttled, hint: 30 * time.Second},
		{name: "Cloudflare block", status: 403, fields: []string{"CF-Ray", "a", "Retry-After", "30"}, want: permanent},

		{name: "LLM rate", status: 429, fields: []string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s"}, want: throttled, hint: 6 * time.Minute},
		{name: "LLM quota", status: 429, body: `{"error":{"code":"insufficient_quota"}}`, want: quota},
		{name: "LLM overloaded", status: 529, body: `{"type":"error","error":{"type":"overloaded_error"}}`, want: overload},

		{name: "Discord global", status: 429, fields: []string{"X-RateLimit-Global", "true", "Retry-After", "2"}, want: throttled, hint: 2 * time.Second, wide: true},
		{name: "Discord body", status: 429, body: `{"message":"You are being rate limited.","retry_after":0.65,"global":false}`, want: throttled, hint: 650 * time.Millisecond},
		{name: "Discord beyond clocks", status: 429, body: `{"retry_after":1e999}`, want: throttled, hint: forGood},
		{name: "Discord as text", status: 429, body: `{"retry_after":"0.65","code":0}`, want: throttled, hint: 650 * time.Millisecond},
		{name: "Google delay beyond clocks", status: 429, body: `{"error":{"details":[{"reason":"RATE_LIMIT_EXCEEDED"},{"retryDelay":"315576000000s"}]}}`, want: throttled, hint: forGood},
		{name: "a field of another type", status: 429, body: `{"retry_after":{"a":1},"message":7,"error":{"code":"insufficient_quota"}}`, want: quota},
		{name: "body of nonsense", status: 503, body: strings.Repeat("{[", 40_000), want: overload},
		{name: "error is a string", status: 429, body: `{"error":"slow down"}`, want: throttled},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := answer(nil, c.status, c.fields...)
			var look []outbound.Classifier
			if c.body != "" {
				resp.Body = io.NopCloser(strings.NewReader(c.body))
				look = append(look, outbound.Bodies)
			}
			v := verdictOf(resp, look...)
			if v.Kind != c.want || v.Hinted != (c.hint != 0) || v.Hint != c.hint || v.ServiceWide != c.wide {
				t.Errorf("got %v, hint %v (%v), service-wide %v", v.Kind, v.Hint, v.Hinted, v.ServiceWide)
			}
			if left, _ := io.ReadAll(resp.Body); c.body != "" && string(left) != c.body {
				t.Errorf("%d bytes left of a body of %d", len(left), len(c.body))
			}
		})
	}
}

// verdictOf classifies by way of Check, which is what callers outside use.
func verdictOf(resp *http.Response, look ...outbound.Classifier) verdict.Verdict {
	var e *verdict.Error
	if errors.As(outbound.Check(resp, nil, look...), &e) {
		return e.Verdict
	}
	return verdict.Verdict{}
}

func TestAThrottleWithStatus200(t *testing.T) {
	const body = `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],
		"extensions":{"cost":{"requestedQueryCost":602,"throttleStatus":{"currentlyAvailable":402,"restoreRate":50}}}}`
	resp := answer(nil, 200)
	resp.Body = io.NopCloser(strings.NewReader(body))
	if v := verdictOf(resp, outbound.GraphQL); v.Kind != verdict.Throttled || v.Hint != 4*time.Second {
		t.Errorf("got %+v", v)
	}
	resp.Body = io.NopCloser(strings.NewReader(`{"errors":[{"extensions":{"code":"MISSING"}}]}`))
	if v := verdictOf(resp, outbound.GraphQL); v.Kind != verdict.OK {
		t.Errorf("another error with 200: %+v", v)
	}
}

func TestAPeekedBodyKeepsItsError(t *testing.T) {
	broken := errors.New("connection lost")
	resp := answer(nil, 500)
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken)))
	if v := verdictOf(resp, outbound.Bodies); v.Kind != verdict.Transient {
		t.Errorf("got %+v", v)
	}
	if got, err := io.ReadAll(resp.Body); string(got) != "{" || !errors.Is(err, broken) {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestWhatAGateSays(t *testing.T) {
	for r := range shed.Reason(shed.ReasonCount) {
		status := 503
		switch r {
		case shed.RateLimited, shed.NotAdmissible:
			status = 429
		case shed.Unidentified:
			status = 401
		case shed.Admitted, shed.Exempt:
			status = 500 // an error of the handler; the gate has no part in it
		}
		v := outbound.Classify(answer(nil, status, "Headgate-Reason", r.String(), "Retry-After", "4"), nil)
		want := verdict.Overloaded
		switch r {
		case shed.RateLimited, shed.CallerCap:
			want = verdict.Throttled
		case shed.NotAdmissible, shed.Unidentified:
			want = verdict.Permanent
		case shed.ClientGone, shed.Draining, shed.Admitted, shed.Exempt:
			want = verdict.Transient
		}
		if v.Kind != want || v.Reason != r && r.Refused() {
			t.Errorf("%v: %+v, want %v", r, v, want)
		}
		if v.Final != (r == shed.DeadlineUnmeetable) {
			t.Errorf("%v: final is %v", r, v.Final)
		}
	}
	for _, text := range []string{"", "banana", strings.Repeat("queue-full", 1000), "QUEUE-FULL"} {
		v := outbound.Classify(answer(nil, 503, "Headgate-Reason", text), nil)
		if v.Kind != verdict.Overloaded || v.Reason.Refused() {
			t.Errorf("%.20q: %+v, want a bare 503", text, v)
		}
	}
}

func TestNamesAreClosed(t *testing.T) {
	seen := map[string]bool{}
	note := func(s fmt.Stringer) {
		if seen[fmt.Sprintf("%T %s", s, s)] || s.String() == "" || s.String() == "unknown" {
			t.Errorf("%T: name %q is missing or given twice", s, s)
		}
		seen[fmt.Sprintf("%T %s", s, s)] = true
	}
	for k := range verdict.Kind(verdict.KindCount) {
		note(k)
	}
	for r := range pacer.Reason(pacer.ReasonCount) {
		note(r)
	}
	for _, s := range outbound.Stops() {
		if s == "" || seen[string(s)] {
			t.Errorf("stop %q is missing or given twice", s)
		}
		seen[string(s)] = true
	}
	for e := outbound.EventAnswered; e <= outbound.EventStopped; e++ {
		note(e)
	}
	if verdict.Kind(99).String() != "unknown" || pacer.Reason(99).String() != "unknown" ||
		outbound.EventType(99).String() != "unknown" {
		t.Error("a name for what does not exist")
	}
}
