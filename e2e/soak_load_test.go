package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// tally counts how requests ended, as their clients saw it.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
	errors []string
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what]++
}

// unanswered is what must not be: a request of a client that stayed, and no status.
func (c *tally) unanswered(what string, err error) {
	c.add(what + " without an answer")
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errors) < 10 {
		c.errors = append(c.errors, fmt.Sprintf("%s: %v", what, err))
	}
}

// of counts the answers whose name ends so.
func (c *tally) of(end string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, count := range c.counts {
		if strings.HasSuffix(what, " "+end) {
			n += count
		}
	}
	return n
}

func (c *tally) report(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for what, n := range c.counts {
		lines = append(lines, fmt.Sprintf("%7d %s", n, what))
	}
	slices.Sort(lines)
	t.Logf("as the clients saw it:\n%s", strings.Join(lines, "\n"))
	for _, e := range c.errors {
		t.Errorf("no answer: %s", e)
	}
	for _, must := range []string{"GET 200", "POST 200", "HTTP/2 GET 200", "stream 200", "socket 101"} {
		if c.counts[must] == 0 {
			t.Errorf("not one %s: the load proves nothing", must)
		}
	}
}

// load runs every kind of client for the given time.
func (s *soak) load(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	h1, h2 := &http.Transport{MaxIdleConnsPerHost: 64}, new(http.Transport)
	h2.Protocols = new(http.Protocols)
	h2.Protocols.SetUnencryptedHTTP2(true)
	defer h1.CloseIdleConnections()
	defer h2.CloseIdleConnections()
	var clients sync.WaitGroup
	run := func(n int, rest time.Duration, one func()) {
		for range n {
			clients.Go(func() {
				for pauseFor(ctx, jitter(rest*time.Duration(*soakEase))) {
					one()
				}
			})
		}
	}
	run(8, 20*time.Millisecond, func() { s.unary(h1, "GET", "GET", "/hello", 0) })
	run(4, 40*time.Millisecond, func() { s.unary(h1, "POST", "POST", "/upload", rand.IntN(64<<10)) })
	run(4, 20*time.Millisecond, func() { s.unary(h2, "HTTP/2 GET", "GET", "/hello", 0) })
	run(4, 20*time.Millisecond, func() { s.vanish(h1) })
	run(4, 200*time.Millisecond, func() { s.stream(h1) })
	run(4, 200*time.Millisecond, s.socket)
	run(1, 150*time.Millisecond, func() { s.hostile(&clients) }) // one in about a hundred
	clients.Wait()
}

func (s *soak) request(ctx context.Context, method, path string, body int) *http.Request {
	var reader io.Reader
	if body > 0 {
		reader = strings.NewReader(strings.Repeat("x", body))
	}
	r, err := http.NewRequestWithContext(ctx, method, s.edge.base+path, reader)
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-Caller", fmt.Sprint("caller-", rand.IntN(5)))
	r.Header.Set("X-Timeout", fmt.Sprint(200+rand.IntN(3000)))
	return r
}

// unary is a client that stays for its answer.
func (s *soak) unary(tr http.RoundTripper, what, method, path string, body int) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := tr.RoundTrip(s.request(ctx, method, path, body))
	if err != nil {
		s.counts.unanswered(what, err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "" {
		s.counts.unanswered(what, errors.New("503 without Retry-After"))
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		s.counts.add(what + " broken off")
		return
	}
	s.counts.add(fmt.Sprint(what, " ", resp.StatusCode))
}

// vanish is a client that leaves when it likes.
func (s *soak) vanish(tr http.RoundTripper) {
	ctx, cancel := context.WithTimeout(context.Background(), jitter(20*time.Millisecond))
	defer cancel()
	resp, err := tr.RoundTrip(s.request(ctx, "POST", "/upload", 1+rand.IntN(256<<10)))
	if err == nil {
		resp.Body.Close()
	}
	s.counts.add("vanished, or nearly")
}

// stream reads some events and leaves.
func (s *soak) stream(tr http.RoundTripper) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	resp, err := tr.RoundTrip(s.request(ctx, "GET", "/events", 0))
	if err != nil {
		s.counts.unanswered("stream", err)
		return
	}
	defer resp.Body.Close()
	s.counts.add(fmt.Sprint("stream ", resp.StatusCode))
	lines := bufio.NewScanner(resp.Body)
	for range rand.IntN(30) {
		lines.Scan()
	}
}

// socket echoes a little and closes, well or badly.
func (s *soak) socket() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.edge.base, "http")+"/ws", nil)
	if resp == nil {
		s.counts.unanswered("socket", err)
		return
	}
	s.counts.add(fmt.Sprint("socket ", resp.StatusCode))
	if err != nil {
		return
	}
	defer c.CloseNow()
	for range rand.IntN(10) {
		if c.Write(ctx, websocket.MessageText, []byte("hello")) != nil {
			return
		}
		if _, _, err := c.Read(ctx); err != nil {
			return
		}
	}
	if rand.IntN(2) == 0 {
		c.Close(websocket.StatusNormalClosure, "")
	}
}
