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
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
)

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
		want verdict.Kind
	}{
		{"cancelled", context.Canceled, verdict.Canceled},
		{"deadline", fmt.Errorf("get: %w", context.DeadlineExceeded), verdict.Canceled},
		{"ours", &pacer.Refusal{Reason: pacer.WaitTooLong}, verdict.LocalRefusal},
		{"ours, wrapped", fmt.Errorf("push: %w", &pacer.Refusal{Reason: pacer.Paused}), verdict.LocalRefusal},
		{"connection refused", refused, verdict.Transient},
		{"no such name", &net.DNSError{IsNotFound: true}, verdict.Permanent},
		{"name server down", &net.DNSError{IsTemporary: true}, verdict.Transient},
		{"certificate", x509.UnknownAuthorityError{}, verdict.Permanent},
		{"cut off", io.ErrUnexpectedEOF, verdict.Transient},
		{"text that lies", temporaryError{}, verdict.Transient},
		{"AWS throttle", fmt.Errorf("op: %w", awsError{"ThrottlingException"}), verdict.Throttled},
		{"AWS quota", awsError{"LimitExceededException"}, verdict.QuotaExhausted},
		{"AWS no throttle code, status 429", errors.Join(awsError{"X"}, awsResponseError{answer(nil, 429)}), verdict.Throttled},
		{"AWS without a response", awsResponseError{}, verdict.Transient},
		{"Google rate", googleError{403, "rateLimitExceeded"}, verdict.Throttled},
		{"Google quota", googleError{403, "quotaExceeded"}, verdict.QuotaExhausted},
		{"Google permission", googleError{403, "IAM_PERMISSION_DENIED"}, verdict.Permanent},
		{"Google over gRPC", googleError{-1, ""}, verdict.Transient},
		{"a hint", hintError{time.Second}, verdict.Throttled},
		{"a hint below zero", hintError{-time.Second}, verdict.Throttled},
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
		want     verdict.Verdict
	}{
		{code: 0, want: verdict.Verdict{}},
		{code: 8, want: verdict.Verdict{Kind: verdict.Throttled}},
		{code: 8, local: true, want: verdict.Verdict{Kind: verdict.Permanent}}, // message too large
		{code: 8, pushback: "1500", want: verdict.Verdict{Kind: verdict.Throttled, Hint: 1500 * time.Millisecond, Hinted: true}},
		{code: 14, pushback: "-1", want: verdict.Verdict{Kind: verdict.Transient, Final: true}},
		{code: 14, pushback: "x", want: verdict.Verdict{Kind: verdict.Transient, Final: true}},
		{code: 10, want: verdict.Verdict{Kind: verdict.Conflict}},
		{code: 4, want: verdict.Verdict{Kind: verdict.Canceled}},
		{code: 5, want: verdict.Verdict{Kind: verdict.Permanent}},
	} {
		if got := verdict.OfGRPC(c.code, c.pushback, c.local); got != c.want {
			t.Errorf("%d %q: %+v, want %+v", c.code, c.pushback, got, c.want)
		}
	}
}

func TestUserClassifiersComeFirst(t *testing.T) {
	open := errors.New("too many requests") // a breaker's own, and its text is no evidence
	if v := verdictOfErr(open); v.Kind != verdict.Transient {
		t.Errorf("unknown error: %+v", v)
	}
	if v := verdictOfErr(fmt.Errorf("x: %w", open), outbound.LocalErrors(open)); v.Kind != verdict.LocalRefusal {
		t.Errorf("named error: %+v", v)
	}
	teapot := func(resp *http.Response, err error) (verdict.Verdict, bool) {
		return verdict.Verdict{Kind: verdict.Throttled}, resp != nil && resp.StatusCode == http.StatusTeapot
	}
	v := verdictOf(answer(nil, 418, "Retry-After", "2"), outbound.LocalErrors(open), teapot)
	if v.Kind != verdict.Throttled || v.Hint != 2*time.Second {
		t.Errorf("teapot: %+v", v)
	}
	if v := verdictOf(answer(nil, 404), teapot); v.Kind != verdict.Permanent {
		t.Errorf("what the user cannot tell: %+v", v)
	}
}

func verdictOfErr(err error, look ...outbound.Classifier) verdict.Verdict {
	var e *verdict.Error
	errors.As(outbound.Check(nil, err, look...), &e)
	return e.Verdict
}

func TestAThrottleIsNoReasonToDelete(t *testing.T) {
	refusal := func(w pacer.Reason) error { return &pacer.Refusal{Reason: w} }
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
		{refusal(pacer.WaitTooLong), true, false},
		{refusal(pacer.Paused), true, false},
		{refusal(pacer.BreakerOpen), false, false},
		{refusal(pacer.AttemptsSpent), false, false},
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

func TestOnlyPermanentAnswersAreConclusive(t *testing.T) {
	for k := range verdict.Kind(verdict.KindCount) {
		err := fmt.Errorf("push: %w", &verdict.Error{Verdict: verdict.Verdict{Kind: k}, Status: 400})
		if got := outbound.IsConclusive(err); got != (k == verdict.Permanent) {
			t.Errorf("%v: conclusive is %v", k, got)
		}
		if got := outbound.IsThrottle(err); got != (k == verdict.Throttled || k == verdict.Overloaded || k == verdict.QuotaExhausted) {
			t.Errorf("%v: throttle is %v", k, got)
		}
	}
	spentQuota := outbound.Check(answer(nil, 409, "x-ms-error-code", "QuotaExceeded"), nil)
	if outbound.IsConclusive(spentQuota) || !outbound.IsThrottle(spentQuota) {
		t.Errorf("a spent quota: %v", spentQuota)
	}
	for r := range pacer.Reason(pacer.ReasonCount) {
		if err := error(&pacer.Refusal{Reason: r}); outbound.IsConclusive(err) || outbound.IsConclusive(outbound.Check(nil, err)) {
			t.Errorf("a refusal of this side for %v is conclusive", r)
		}
	}
}

func TestARefusalSaysWhatItKnows(t *testing.T) {
	cause := errors.New("circuit breaker is open")
	for _, c := range []struct {
		r    *pacer.Refusal
		want string
	}{
		{&pacer.Refusal{Reason: pacer.NotAdmissible}, "outbound: not sent: not-admissible"},
		{&pacer.Refusal{Reason: pacer.Paused, Wait: 1500 * time.Millisecond}, "outbound: not sent: paused (wait 1.5s)"},
		{&pacer.Refusal{Reason: pacer.BreakerOpen, Err: cause}, "outbound: not sent: breaker-open: circuit breaker is open"},
	} {
		if got := c.r.Error(); got != c.want || strings.Contains(got, "throttled") {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
