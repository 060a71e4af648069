package sockets

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// client sends requests at random instants, whether or not earlier ones have been
// answered: what people send does not depend on how they are served. The seed fixes
// the instants and the kinds.
type client struct {
	scenario *Scenario
	url      string
	http     *http.Client
	random   *rand.Rand
	tally    *tally
	all      sync.WaitGroup
}

const (
	retries   = 3
	backMost  = 5 * time.Second // that a client stays away, whatever it is told
	idleConns = 4096
)

func newClient(s *Scenario, url string, seed uint64, t *tally) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: idleConns, MaxIdleConns: idleConns, DisableCompression: true}
	return &client{
		scenario: s, url: url, http: &http.Client{Transport: transport},
		random: rand.New(rand.NewPCG(seed, seed)), tally: t,
	}
}

// run plays all phases, calls enter at the start of each, and waits for the last
// answers. It ends early with ctx.
func (c *client) run(ctx context.Context, enter func(phase int) error) error {
	defer c.http.CloseIdleConnections()
	defer c.all.Wait()
	begin := time.Now()
	next, end := begin, begin
	for i, p := range c.scenario.Phases {
		end = end.Add(p.Length)
		if err := enter(i); err != nil {
			return err
		}
		for {
			at := next.Add(time.Duration(c.random.ExpFloat64() / p.Rate * float64(time.Second)))
			if at.After(end) {
				next = end
				break
			}
			next = at
			if !sleepUntil(ctx, next) {
				return ctx.Err()
			}
			a := arrival{phase: i, kind: c.draw(), at: next.Sub(begin)}
			c.all.Go(func() { c.visit(ctx, a) })
		}
		if !sleepUntil(ctx, end) {
			return ctx.Err()
		}
	}
	return nil
}

func (c *client) draw() int {
	u := c.random.Float64()
	for i, k := range c.scenario.Kinds {
		if u -= k.Share; u < 0 {
			return i
		}
	}
	return len(c.scenario.Kinds) - 1
}

// visit sends a request, and again when it is refused, if that is the client's way.
func (c *client) visit(ctx context.Context, a arrival) {
	c.tally.arrive(a)
	for n := 0; ; n++ {
		again := c.send(ctx, a)
		if again < 0 || n == retries || c.scenario.Retries == RetryNone || !sleepUntil(ctx, time.Now().Add(again)) {
			return
		}
	}
}

// send makes one attempt and books it. It returns how long a refused client stays
// away, or less than zero when there is no cause to come back.
func (c *client) send(ctx context.Context, a arrival) (again time.Duration) {
	kind := c.scenario.Kinds[a.kind]
	sent := time.Now()
	ctx, cancel := context.WithDeadline(ctx, sent.Add(Patience))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/"+kind.Route, nil)
	if err != nil {
		return -1
	}
	r.Header.Set(callerHeader, kind.Caller)
	r.Header.Set("X-Timeout", strconv.FormatInt(Patience.Milliseconds(), 10))
	r.Header.Set("X-Sent", strconv.FormatInt(sent.UnixNano(), 10))
	r.Header.Set("X-Size", strconv.FormatFloat(kind.Size, 'g', -1, 64))
	resp, err := c.http.Do(r)
	if err != nil {
		c.tally.fail(a)
		return -1
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	took := time.Since(sent)
	switch {
	case err == nil && resp.StatusCode == http.StatusOK && took <= Patience:
		c.tally.serve(a, took)
		return -1
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable:
		c.tally.refuse(a, took)
		return c.away(resp.Header)
	}
	c.tally.fail(a)
	return -1
}

// away is how long a refused client stays away.
func (c *client) away(h http.Header) time.Duration {
	if c.scenario.Retries != RetryAfter {
		return 0
	}
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, backMost)
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
