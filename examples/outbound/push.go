package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/ratelimit"
)

// pusher sends one notification. It returns true when the matter of the device is
// done with: delivered, or given up.
type pusher interface {
	push(ctx context.Context, device int) (done bool)
	numbers() string // in force, for the log
	breaker() *breaker
}

// tally is what became of the devices.
type tally struct{ delivered, deleted atomic.Int64 }

// paced sends through an outbound.Transport.
type paced struct {
	url       string
	client    *http.Client
	transport *outbound.Transport
	circuit   *breaker
	tally     *tally
}

func newPaced(url string, base *http.Transport, s scenario, t *tally) *paced {
	p := &paced{url: url, circuit: newBreaker(), tally: t}
	p.transport = outbound.MustNew(outbound.Options{
		Base:    base,
		Rate:    ratelimit.PerKey(s.quota, burstOf(s.quota)/2), // what the API's owner promised
		Breaker: func(*http.Request) outbound.Breaker { return outbound.Breaker{Execute: p.circuit.Execute} },
	})
	p.client = &http.Client{Transport: p.transport}
	return p
}

// push returns false when the device is to be tried again later. Only the API's
// own answer about the device is a reason to delete it.
func (p *paced) push(ctx context.Context, device int) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/%d", p.url, device), nil)
	if err != nil {
		panic(err) // the URL is ours
	}
	resp, err := p.client.Do(req)
	if err == nil {
		defer resp.Body.Close()
	}
	switch err := outbound.Check(resp, err); {
	case err == nil:
		p.tally.delivered.Add(1)
	case outbound.IsConclusive(err):
		p.tally.deleted.Add(1)
	default:
		return false
	}
	return true
}

func (p *paced) breaker() *breaker { return p.circuit }

func (p *paced) numbers() string {
	for _, o := range p.transport.Stats().Operations {
		return fmt.Sprintf("in force %5.1f/s (×%.2f), pause %3.1f s, %2d in line, %2d in flight",
			float64(o.Rate), o.Multiplier, o.PauseLeft.Seconds(), o.Waiting, o.InFlight)
	}
	return "nothing sent yet"
}

// naive is how it went wrong: no ceiling, a retry at once, and every failure taken
// for the device's fault.
type naive struct {
	url     string
	client  *http.Client
	circuit *breaker
	tally   *tally
}

func newNaive(url string, base *http.Transport, t *tally) *naive {
	return &naive{url: url, client: &http.Client{Transport: base}, circuit: newNaiveBreaker(), tally: t}
}

var errStatus = errors.New("push failed")

func (n *naive) push(ctx context.Context, device int) bool {
	for range 3 {
		_, err := n.circuit.Execute(func() (*http.Response, error) { return n.post(ctx, device) })
		switch {
		case err == nil:
			n.tally.delivered.Add(1)
			return true
		case errors.Is(err, errOpen):
			time.Sleep(100 * time.Millisecond)
		}
	}
	n.tally.deleted.Add(1) // "the token must be dead"
	return true
}

func (n *naive) post(ctx context.Context, device int) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/%d", n.url, device), nil)
	if err != nil {
		return nil, err
	}
	resp, err := n.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		return resp, errStatus
	}
	return resp, nil
}

func (n *naive) breaker() *breaker { return n.circuit }
func (n *naive) numbers() string   { return "no ceiling" }
