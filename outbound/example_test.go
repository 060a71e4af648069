package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// A service that answers with the given statuses in turn, the last one for ever.
func exampleService(statuses ...int) *httptest.Server {
	n := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(statuses[min(n, len(statuses)-1)])
		n++
	}))
}

func Example() {
	service := exampleService(503, 200)
	defer service.Close()
	transport := outbound.MustNew(outbound.Options{
		Rate:           ratelimit.PerKey(100, 20), // the quota
		InFlight:       shed.Fixed(64),
		AttemptTimeout: 2 * time.Second,
	})
	client := &http.Client{Transport: transport}

	resp, err := client.Get(service.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	in := transport.Stats().Operations[0]
	fmt.Println(resp.StatusCode, "after", in.Attempts, "attempts;", in.Rate, "per second in force")
	// Output: 200 after 2 attempts; 100 per second in force
}

func ExampleNew() {
	_, err := outbound.New(outbound.Options{MaxWait: -time.Second})
	fmt.Println(err)
	// Output: outbound: MaxWait = -1s: must be positive
}

func ExampleByHost() {
	req, _ := http.NewRequest(http.MethodGet, "https://api.test/v1/users", nil)
	fmt.Println(outbound.ByHost(req).Space)
	// A quota per operation needs a key that tells operations apart:
	perOperation := func(r *http.Request) ratelimit.Key {
		return ratelimit.Key{Space: r.URL.Host, ID: r.Method}
	}
	fmt.Println(perOperation(req).ID)
	// Output:
	// api.test
	// GET
}

func ExampleCheck() {
	service := exampleService(429)
	defer service.Close()
	resp, err := http.Get(service.URL)
	if err == nil {
		defer resp.Body.Close()
	}
	err = outbound.Check(resp, err)
	fmt.Println(err)
	fmt.Println("delete the device?", outbound.IsConclusive(err))
	// Output:
	// outbound: throttled (status 429)
	// delete the device? false
}

func ExampleIsThrottle() {
	for _, status := range []int{404, 429, 503} {
		err := outbound.Check(&http.Response{StatusCode: status, Header: http.Header{}}, nil)
		fmt.Println(status, outbound.IsThrottle(err))
	}
	fmt.Println("not sent", outbound.IsThrottle(&pacer.Refusal{Reason: pacer.Paused}))
	// Output:
	// 404 false
	// 429 true
	// 503 true
	// not sent true
}

func ExampleIsConclusive() {
	gone := outbound.Check(&http.Response{StatusCode: 410, Header: http.Header{}}, nil)
	fmt.Println(outbound.IsConclusive(gone), outbound.IsConclusive(context.Canceled))
	// Output: true false
}

func ExampleNewAttempts() {
	service := exampleService(500)
	defer service.Close()
	client := &http.Client{Transport: outbound.MustNew(outbound.Options{
		Retry: outbound.RetryOptions{Attempts: 1},
	})}
	job := outbound.NewAttempts(2)
	ctx := job.Context(context.Background())
	for range 3 {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, service.URL, nil)
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(errors.Is(err, verdict.ErrLocal), job.Left(), "left")
			return
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	// Output:
	// 500
	// 500
	// true 0 left
}
