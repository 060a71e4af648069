package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The traffic: what people send does not depend on how they are served.
const (
	perSecond = 1500
	classes   = 3
)

var (
	routeNames = [classes]string{"checkout", "browse", "export"}
	shares     = [classes]float64{0.1, 0.3, 0.6}
)

// client sends requests at random instants, whether or not the earlier ones have
// been answered, and gives up on each after its patience.
type client struct {
	url  string
	http *http.Client
	tape *tape
	all  sync.WaitGroup
}

func newClient(url string, t *tape) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 4096, MaxIdleConns: 4096, DisableCompression: true}
	return &client{url: url, http: &http.Client{Transport: transport}, tape: t}
}

// run sends for the given time and waits for the last answers.
func (c *client) run(length time.Duration) {
	start := time.Now()
	next := start
	for {
		next = next.Add(time.Duration(rand.ExpFloat64() / perSecond * float64(time.Second)))
		if next.Sub(start) > length {
			break
		}
		time.Sleep(time.Until(next))
		class, second := draw(), int(next.Sub(start)/time.Second)
		c.all.Go(func() { c.send(class, second) })
	}
	c.all.Wait()
	c.http.CloseIdleConnections()
}

func draw() int {
	u := rand.Float64()
	for k := range classes - 1 {
		if u < shares[k] {
			return k
		}
		u -= shares[k]
	}
	return classes - 1
}

func (c *client) send(class, second int) {
	sent := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), sent.Add(patience))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/"+routeNames[class], nil)
	if err != nil {
		return
	}
	req.Header.Set("X-Timeout", strconv.Itoa(int(patience/time.Millisecond)))
	req.Header.Set("X-Sent", strconv.FormatInt(sent.UnixNano(), 10))
	resp, err := c.http.Do(req)
	a := answer{class: class, second: second}
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		a.status, a.took = resp.StatusCode, time.Since(sent)
		a.told = resp.Header.Get("Retry-After") != ""
	}
	c.tape.add(a)
}
