package outbound_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/shed"
)

func TestClassifyResponses(t *testing.T) {
	const (
		ok        = outbound.OK
		throttled = outbound.Throttled
		overload  = outbound.Overloaded
		quota     = outbound.QuotaExhausted
		conflict  = outbound.Conflict
		transient = outbound.Transient
		permanent = outbound.Permanent
	)
	for _, c := range []struct {
		name   string
		status int
		fields []string
		body   string // looked into when not empty
		want   outbound.Kind
		hint   time.Duration // -1: any, and it must be there; 0: none
		scope  outbound.Scope
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

		{name: "GitHub primary", status: 403, fields: []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"}, want: throttled, hint: time.Minute, scope: outbound.ScopeService},
		{name: "GitHub with hint", status: 403, fields: []string{"Retry-After", "30"}, want: throttled, hint: 30 * time.Second},
		{name: "GitHub 429 without", status: 429, fields: []string{"X-GitHub-Request-Id", "A"}, want: throttled, hint: time.Minute, scope: outbound.ScopeService},
		{name: "GitHub secondary", status: 403, body: `{"message":"You have exceeded a secondary rate limit."}`, want: throttled, hint: time.Minute, scope: outbound.ScopeService},
		{name: "GitHub permission", status: 403, fields: []string{"X-RateLimit-Remaining", "4999"}, body: `{"message":"Must have admin rights"}`, want: permanent},

		{name: "Cloudflare limit", status: 429, fields: []string{"CF-Ray", "a", "Retry-After", "30"}, want: throttled, hint: 30 * time.Second},
		{name: "Cloudflare block", status: 403, fields: []string{"CF-Ray", "a", "Retry-After", "30"}, want: permanent},

		{name: "LLM rate", status: 429, fields: []string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s"}, want: throttled, hint: 6 * time.Minute},
		{name: "LLM quota", status: 429, body: `{"error":{"code":"insufficient_quota"}}`, want: quota},
		{name: "LLM overloaded", status: 529, body: `{"type":"error","error":{"type":"overloaded_error"}}`, want: overload},

		{name: "Discord global", status: 429, fields: []string{"X-RateLimit-Global", "true", "Retry-After", "2"}, want: throttled, hint: 2 * time.Second, scope: outbound.ScopeService},
		{name: "Discord body", status: 429, body: `{"message":"You are being rate limited.","retry_after":0.65,"global":false}`, want: throttled, hint: 650 * time.Millisecond},
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
			if v.Kind != c.want || v.Hinted != (c.hint != 0) || v.Hint != c.hint || v.Scope != c.scope {
				t.Errorf("got %v, hint %v (%v), scope %v", v.Kind, v.Hint, v.Hinted, v.Scope)
			}
			if left, _ := io.ReadAll(resp.Body); c.body != "" && string(left) != c.body {
				t.Errorf("%d bytes left of a body of %d", len(left), len(c.body))
			}
		})
	}
}

// verdictOf classifies by way of Check, which is what callers outside use.
func verdictOf(resp *http.Response, look ...outbound.Classifier) outbound.Verdict {
	var e *outbound.Error
	if errors.As(outbound.Check(resp, nil, look...), &e) {
		return e.Verdict
	}
	return outbound.Verdict{}
}

func TestAThrottleWithStatus200(t *testing.T) {
	const body = `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],
		"extensions":{"cost":{"requestedQueryCost":602,"throttleStatus":{"currentlyAvailable":402,"restoreRate":50}}}}`
	resp := answer(nil, 200)
	resp.Body = io.NopCloser(strings.NewReader(body))
	if v := verdictOf(resp, outbound.GraphQL); v.Kind != outbound.Throttled || v.Hint != 4*time.Second {
		t.Errorf("got %+v", v)
	}
	resp.Body = io.NopCloser(strings.NewReader(`{"errors":[{"extensions":{"code":"MISSING"}}]}`))
	if v := verdictOf(resp, outbound.GraphQL); v.Kind != outbound.OK {
		t.Errorf("another error with 200: %+v", v)
	}
}

func TestAPeekedBodyKeepsItsError(t *testing.T) {
	broken := errors.New("connection lost")
	resp := answer(nil, 500)
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken)))
	if v := verdictOf(resp, outbound.Bodies); v.Kind != outbound.Transient {
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
		case shed.RateLimited, shed.Never:
			status = 429
		case shed.Unidentified:
			status = 401
		case shed.Admitted, shed.Exempt:
			status = 500 // an error of the handler; the gate has no part in it
		}
		v := outbound.Classify(answer(nil, status, "Headgate-Reason", r.String(), "Retry-After", "4"), nil)
		want := outbound.Overloaded
		switch r {
		case shed.RateLimited, shed.TenantCap:
			want = outbound.Throttled
		case shed.Never, shed.Unidentified:
			want = outbound.Permanent
		case shed.ClientGone, shed.Draining, shed.Admitted, shed.Exempt:
			want = outbound.Transient
		}
		if v.Kind != want || v.Reason != r && r.Refused() {
			t.Errorf("%v: %+v, want %v", r, v, want)
		}
		if v.Final != (r == shed.Hopeless) {
			t.Errorf("%v: final is %v", r, v.Final)
		}
	}
	for _, text := range []string{"", "banana", strings.Repeat("queue-full", 1000), "QUEUE-FULL"} {
		v := outbound.Classify(answer(nil, 503, "Headgate-Reason", text), nil)
		if v.Kind != outbound.Overloaded || v.Reason.Refused() {
			t.Errorf("%.20q: %+v, want a bare 503", text, v)
		}
	}
}

// The errors below have the shape of the SDKs', by method sets alone.
type awsError struct{ code string }

func (e awsError) Error() string     { return e.code }
func (e awsError) ErrorCode() string { return e.code }

type awsResponseError struct{ resp *http.Response }

func (e awsResponseError) Error() string       { return "response error" }
func (e awsResponseError) HTTPStatusCode() int { return e.resp.StatusCode } // panics without one

type googleError struct {
	status int
	reason string
}

func (e googleError) Error() string  { return e.reason }
func (e googleError) HTTPCode() int  { return e.status }
func (e googleError) Reason() string { return e.reason }

type hintError struct{ d time.Duration }

func (e hintError) Error() string                     { return "slow down" }
func (e hintError) RetryAfter() (time.Duration, bool) { return e.d, true }

type temporaryError struct{}

func (temporaryError) Error() string   { return "too many requests" }
func (temporaryError) Temporary() bool { return true }
func (temporaryError) Timeout() bool   { return true }

func TestClassifyErrors(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		name string
		err  error
		want outbound.Kind
	}{
		{"cancelled", context.Canceled, outbound.Canceled},
		{"deadline", fmt.Errorf("get: %w", context.DeadlineExceeded), outbound.Canceled},
		{"ours", &outbound.Refusal{Why: outbound.WaitTooLong}, outbound.LocalRefusal},
		{"ours, wrapped", fmt.Errorf("push: %w", &outbound.Refusal{Why: outbound.Paused}), outbound.LocalRefusal},
		{"connection refused", refused, outbound.Transient},
		{"no such name", &net.DNSError{IsNotFound: true}, outbound.Permanent},
		{"name server down", &net.DNSError{IsTemporary: true}, outbound.Transient},
		{"certificate", x509.UnknownAuthorityError{}, outbound.Permanent},
		{"cut off", io.ErrUnexpectedEOF, outbound.Transient},
		{"text that lies", temporaryError{}, outbound.Transient},
		{"AWS throttle", fmt.Errorf("op: %w", awsError{"ThrottlingException"}), outbound.Throttled},
		{"AWS quota", awsError{"LimitExceededException"}, outbound.QuotaExhausted},
		{"AWS no code of pace, status 429", errors.Join(awsError{"X"}, awsResponseError{answer(nil, 429)}), outbound.Throttled},
		{"AWS without a response", awsResponseError{}, outbound.Transient},
		{"Google rate", googleError{403, "rateLimitExceeded"}, outbound.Throttled},
		{"Google quota", googleError{403, "quotaExceeded"}, outbound.QuotaExhausted},
		{"Google permission", googleError{403, "IAM_PERMISSION_DENIED"}, outbound.Permanent},
		{"Google over gRPC", googleError{-1, ""}, outbound.Transient},
		{"a hint", hintError{time.Second}, outbound.Throttled},
		{"a hint below zero", hintError{-time.Second}, outbound.Throttled},
	} {
		v := outbound.Classify(nil, c.err)
		if v.Kind != c.want || v.Hint < 0 {
			t.Errorf("%s: %+v, want %v", c.name, v, c.want)
		}
	}
}

func TestClassifyGRPC(t *testing.T) {
	for _, c := range []struct {
		code     uint32
		pushback string
		local    bool
		want     outbound.Verdict
	}{
		{code: 0, want: outbound.Verdict{}},
		{code: 8, want: outbound.Verdict{Kind: outbound.Throttled}},
		{code: 8, local: true, want: outbound.Verdict{Kind: outbound.Permanent}}, // message too large
		{code: 8, pushback: "1500", want: outbound.Verdict{Kind: outbound.Throttled, Hint: 1500 * time.Millisecond, Hinted: true}},
		{code: 14, pushback: "-1", want: outbound.Verdict{Kind: outbound.Transient, Final: true}},
		{code: 14, pushback: "x", want: outbound.Verdict{Kind: outbound.Transient, Final: true}},
		{code: 10, want: outbound.Verdict{Kind: outbound.Conflict}},
		{code: 4, want: outbound.Verdict{Kind: outbound.Canceled}},
		{code: 5, want: outbound.Verdict{Kind: outbound.Permanent}},
	} {
		if got := outbound.GRPC(c.code, c.pushback, c.local); got != c.want {
			t.Errorf("%d %q: %+v, want %+v", c.code, c.pushback, got, c.want)
		}
	}
}

func TestUserClassifiersComeFirst(t *testing.T) {
	open := errors.New("too many requests") // a breaker's own, and its text is no evidence
	if v := verdictOfErr(open); v.Kind != outbound.Transient {
		t.Errorf("unknown error: %+v", v)
	}
	if v := verdictOfErr(fmt.Errorf("x: %w", open), outbound.LocalErrors(open)); v.Kind != outbound.LocalRefusal {
		t.Errorf("named error: %+v", v)
	}
	teapot := func(resp *http.Response, err error) (outbound.Verdict, bool) {
		return outbound.Verdict{Kind: outbound.Throttled}, resp != nil && resp.StatusCode == http.StatusTeapot
	}
	v := verdictOf(answer(nil, 418, "Retry-After", "2"), outbound.First(nil, outbound.LocalErrors(open), teapot))
	if v.Kind != outbound.Throttled || v.Hint != 2*time.Second {
		t.Errorf("teapot: %+v", v)
	}
	if v := verdictOf(answer(nil, 404), teapot); v.Kind != outbound.Permanent {
		t.Errorf("what the user cannot tell: %+v", v)
	}
}

func verdictOfErr(err error, look ...outbound.Classifier) outbound.Verdict {
	var e *outbound.Error
	errors.As(outbound.Check(nil, err, look...), &e)
	return e.Verdict
}

func TestAThrottleIsNoReasonToDelete(t *testing.T) {
	refusal := func(w outbound.Why) error { return &outbound.Refusal{Why: w} }
	status := func(s int) error { return outbound.Check(answer(nil, s), nil) }
	for _, c := range []struct {
		err                  error
		throttle, conclusive bool
	}{
		{nil, false, false},
		{status(200), false, false},
		{status(404), false, true},
		{status(410), false, true},
		{status(429), true, false},
		{status(503), true, false},
		{status(500), false, false},
		{refusal(outbound.WaitTooLong), true, false},
		{refusal(outbound.Paused), true, false},
		{refusal(outbound.BreakerOpen), false, false},
		{refusal(outbound.AttemptsSpent), false, false},
		{context.Canceled, false, false},
		{fmt.Errorf("push: %w", status(429)), true, false},
		{awsError{"ThrottlingException"}, true, false},
	} {
		if got := outbound.IsThrottle(c.err); got != c.throttle {
			t.Errorf("IsThrottle(%v) = %v", c.err, got)
		}
		if got := outbound.IsConclusive(c.err); got != c.conclusive {
			t.Errorf("IsConclusive(%v) = %v", c.err, got)
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
	for k := range outbound.Kind(outbound.KindCount) {
		note(k)
	}
	for w := range outbound.Why(outbound.WhyCount) {
		note(w)
	}
	for s := range outbound.Stop(outbound.StopCount) {
		note(s)
	}
	for e := range outbound.EventType(outbound.EventTypeCount) {
		note(e)
	}
	if outbound.Kind(99).String() != "unknown" || outbound.Why(99).String() != "unknown" ||
		outbound.Stop(99).String() != "unknown" || outbound.EventType(99).String() != "unknown" {
		t.Error("a name for what does not exist")
	}
}
