package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
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

func ExampleLocalErrors() {
	errTooMany := errors.New("too many requests") // a breaker's, despite its words
	err := outbound.Check(nil, errTooMany, outbound.LocalErrors(errTooMany))
	fmt.Println(err)
	// Output: outbound: local-refusal: too many requests
}

func ExamplePeek() {
	maintenance := outbound.Peek(400, func(_ *http.Response, body []byte) (verdict.Verdict, bool) {
		return verdict.Verdict{Kind: verdict.Overloaded}, strings.Contains(string(body), "maintenance")
	})
	resp := &http.Response{StatusCode: 500, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("down for maintenance"))}
	fmt.Println(outbound.Check(resp, nil, maintenance))
	left, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s\n", left)
	// Output:
	// outbound: overloaded (status 500)
	// down for maintenance
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
