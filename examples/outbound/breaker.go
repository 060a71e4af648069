package main

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/headgate-go/headgate/outbound"
)

// breaker stands for the circuit breaker of your choice: ten failures in a row, and
// it opens for a second. Its Execute has the shape that sony/gobreaker and
// failsafe-go have.
type breaker struct {
	isSuccessful func(error) bool

	mu       sync.Mutex
	failures int
	until    time.Time
	opened   int
}

var errOpen = errors.New("circuit breaker is open")

// Execute runs call, unless the circuit is open.
func (b *breaker) Execute(call func() (*http.Response, error)) (*http.Response, error) {
	if b.open(time.Now()) {
		return nil, errOpen
	}
	resp, err := call()
	b.note(b.isSuccessful(err), time.Now())
	return resp, err
}

func (b *breaker) open(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.until)
}

func (b *breaker) note(ok bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ok {
		b.failures = 0
		return
	}
	if b.failures++; b.failures >= 10 {
		b.failures, b.until = 0, now.Add(time.Second)
		b.opened++
	}
}

func (b *breaker) timesOpened() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened
}

// newBreaker makes one that knows what a failure is.
func newBreaker() *breaker { return &breaker{isSuccessful: outbound.IsSuccessful} }

// newNaiveBreaker makes one for which whatever is no 200 is a failure.
func newNaiveBreaker() *breaker {
	return &breaker{isSuccessful: func(err error) bool { return err == nil }}
}
