package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/queue"
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
	fmt.Println("not sent", outbound.IsThrottle(&outbound.Refusal{Why: outbound.Paused}))
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

func ExampleNewPacer() {
	pacer, err := outbound.NewPacer(outbound.PacerOptions{Rate: ratelimit.PerKey(10, 1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	key := ratelimit.Key{Space: "dynamodb", ID: "PutItem"}

	// Around each attempt of an SDK:
	if _, err := pacer.Wait(context.Background(), key); err != nil {
		fmt.Println(err)
		return
	}
	answer := outbound.Verdict{Kind: outbound.Throttled, Hint: time.Minute, Hinted: true}
	pacer.Heard(context.Background(), key, answer)

	// Whoever comes now, with less patience than that, is told at once.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = pacer.Wait(ctx, key)
	var refusal *outbound.Refusal
	fmt.Println(errors.As(err, &refusal), refusal.Why)
	// Output: true paused
}

func ExamplePacer_Over() {
	service := exampleService(200)
	defer service.Close()
	pacer, _ := outbound.NewPacer(outbound.PacerOptions{Rate: ratelimit.PerKey(1000, 1)})
	// Two parts by hand: paced attempts, and a listener that slows them down.
	client := &http.Client{Transport: pacer.Listen(pacer.Over(nil, nil), nil)}
	for range 3 {
		resp, err := client.Get(service.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	fmt.Println(pacer.Stats().Operations[0].Attempts)
	// Output: 3
}

func ExamplePacer_Listen() {
	service := exampleService(429)
	defer service.Close()
	pacer, _ := outbound.NewPacer(outbound.PacerOptions{Rate: ratelimit.PerKey(100, 10)})
	client := &http.Client{Transport: pacer.Listen(nil, nil)}
	resp, err := client.Get(service.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(pacer.Stats().Operations[0].Cuts, "cut")
	// Output: 1 cut
}

func ExampleRetry() {
	service := exampleService(500, 200)
	defer service.Close()
	retry, err := outbound.Retry(nil, outbound.RetryOptions{Attempts: 2}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := (&http.Client{Transport: retry}).Get(service.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 200
}

func ExampleNewRetryBudget() {
	budget, err := outbound.NewRetryBudget(outbound.BudgetOptions{Ratio: 0.2, Floor: outbound.NoBudget})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()
	for range 5 {
		budget.Call(now)
	}
	fmt.Println(budget.Try(now), budget.Try(now))
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
			fmt.Println(errors.Is(err, outbound.ErrLocal), job.Left(), "left")
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

func ExampleNewInFlight() {
	service := exampleService(200)
	defer service.Close()
	transport, err := outbound.NewInFlight(nil, queue.Config{Limit: shed.Fixed(1), MaxWait: queue.NoWait})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport}
	first, err := client.Get(service.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	first.Body.Close() // an empty body is done with at once, any other here

	second, err := client.Get(service.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	second.Body.Close()
	fmt.Println(second.StatusCode, transport.Stats().InFlight)
	// Output: 200 0
}
