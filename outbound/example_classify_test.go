package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/shed"
)

func ExampleClassify() {
	resp := &http.Response{StatusCode: 400, Header: http.Header{
		"X-Amzn-Errortype":  {"ThrottlingException"},
		"X-Amz-Retry-After": {"1500"},
	}}
	v := outbound.Classify(resp, nil)
	fmt.Println(v.Kind, v.Hint)
	fmt.Println(outbound.Classify(nil, context.Canceled).Kind)
	// Output:
	// throttled 1.5s
	// canceled
}

func ExampleFirst() {
	busy := func(resp *http.Response, _ error) (outbound.Verdict, bool) {
		return outbound.Verdict{Kind: outbound.Throttled}, resp != nil && resp.StatusCode == 420
	}
	mine := outbound.First(busy, outbound.Bodies)
	err := outbound.Check(&http.Response{StatusCode: 420, Header: http.Header{}}, nil, mine)
	fmt.Println(err)
	// Output: outbound: throttled (status 420)
}

func ExampleLocalErrors() {
	errTooMany := errors.New("too many requests") // a breaker's, despite its words
	err := outbound.Check(nil, errTooMany, outbound.LocalErrors(errTooMany))
	fmt.Println(err)
	// Output: outbound: local-refusal: too many requests
}

func ExampleHint() {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, value := range []string{"7", "1.5", "Mon, 01 Jun 2026 12:00:03 GMT", "1780315230", "-1"} {
		d, ok := outbound.Hint(http.Header{"Retry-After": {value}}, now)
		fmt.Println(d, ok)
	}
	// Output:
	// 7s true
	// 1.5s true
	// 3s true
	// 30s true
	// 0s false
}

func ExamplePeek() {
	maintenance := outbound.Peek(func(_ *http.Response, body []byte) (outbound.Verdict, bool) {
		return outbound.Verdict{Kind: outbound.Overloaded}, strings.Contains(string(body), "maintenance")
	})
	resp := &http.Response{StatusCode: 500, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("down for maintenance"))}
	fmt.Println(outbound.Check(resp, nil, maintenance))
	left, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s\n", left)
	// Output:
	// outbound: overloaded (status 500)
	// down for maintenance
}

func ExamplePeekAll() {
	busy := outbound.PeekAll(func(_ *http.Response, body []byte) (outbound.Verdict, bool) {
		return outbound.Verdict{Kind: outbound.Throttled}, strings.HasPrefix(string(body), "BUSY")
	})
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("BUSY"))}
	fmt.Println(outbound.Check(resp, nil, busy))
	// Output: outbound: throttled (status 200)
}

func ExampleGRPC() {
	// In a unary client interceptor, with s := status.Convert(err):
	//	outbound.GRPC(uint32(s.Code()), pushback, local)
	fmt.Println(outbound.GRPC(8, "1500", false).Kind) // RESOURCE_EXHAUSTED
	fmt.Println(outbound.GRPC(8, "", true).Kind)      // a message too large for this side
	// Output:
	// throttled
	// permanent
}

func ExampleParseReason() {
	r, ok := outbound.ParseReason("queue-full")
	fmt.Println(r == shed.QueueFull, ok)
	_, ok = outbound.ParseReason("because")
	fmt.Println(ok)
	// Output:
	// true true
	// false
}

func ExampleRelay() {
	// What the service behind answered, after our retries:
	behind := &http.Response{StatusCode: 503, Header: http.Header{
		"Headgate-Reason": {"queue-full"}, "Retry-After": {"4"},
	}}
	w := httptest.NewRecorder()
	if outbound.Relay(w.Header(), behind, nil) {
		w.WriteHeader(behind.StatusCode)
	}
	// The client in front slows down, and does not retry what was retried here.
	v := outbound.Classify(w.Result(), nil)
	fmt.Println(v.Kind, v.Reason.String(), v.Hint, "final:", v.Final)
	// Output: overloaded queue-full 4s final: true
}

// onceOpen stands for a circuit breaker: it lets nothing through.
type onceOpen struct{}

var errCircuit = errors.New("circuit breaker is open")

func (onceOpen) Execute(func() (*http.Response, error)) (*http.Response, error) {
	return nil, errCircuit
}

func ExampleBreak() {
	var cb onceOpen // in earnest: gobreaker.NewCircuitBreaker[*http.Response](…)
	breaker := outbound.Breaker{Execute: cb.Execute}
	rt := outbound.Break(nil, func(*http.Request) outbound.Breaker { return breaker })
	req, _ := http.NewRequest(http.MethodGet, "http://service.test/", nil)
	_, err := rt.RoundTrip(req)
	fmt.Println(err)
	fmt.Println(errors.Is(err, outbound.ErrLocal), errors.Is(err, errCircuit))
	// Output:
	// outbound: not sent: breaker-open: circuit breaker is open
	// true true
}

func ExampleIsFailure() {
	for _, status := range []int{404, 429, 500} {
		fmt.Println(status, outbound.IsFailure(&http.Response{StatusCode: status, Header: http.Header{}}, nil))
	}
	// Output:
	// 404 false
	// 429 false
	// 500 true
}

func ExampleIsSuccessful() {
	throttle := outbound.Check(&http.Response{StatusCode: 429, Header: http.Header{}}, nil)
	fault := outbound.Check(&http.Response{StatusCode: 500, Header: http.Header{}}, nil)
	fmt.Println(outbound.IsSuccessful(throttle), outbound.IsSuccessful(fault))
	// Output: true false
}

func ExampleIsExcluded() {
	fmt.Println(outbound.IsExcluded(context.Canceled), outbound.IsExcluded(errors.New("connection reset")))
	// Output: true false
}
