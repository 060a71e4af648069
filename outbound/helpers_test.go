package outbound_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// tripper is a base made of a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answer makes a response with a short body and the given header fields.
func answer(r *http.Request, status int, fields ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	body := "answer"
	return &http.Response{
		StatusCode: status, Header: h, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// pipes is an http.Transport and a server at the two ends of net.Pipes, so that
// HTTP runs on fake time.
type pipes struct {
	*http.Transport
	dials atomic.Int32
}

// pipeListener hands one end of each pipe to the server.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func serve(t *testing.T, h http.HandlerFunc) *pipes {
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }()
	p := &pipes{}
	p.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		p.dials.Add(1)
		client, far := net.Pipe()
		select {
		case l.conns <- far:
			return client, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		p.CloseIdleConnections()
		_ = server.Close()
	})
	return p
}

// script answers the n-th attempt with its n-th handler, the last one for ever, and
// notes when each came.
type script struct {
	steps []http.HandlerFunc

	mu    sync.Mutex
	at    []time.Time
	bodys []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	n := len(s.at)
	s.at = append(s.at, time.Now())
	s.bodys = append(s.bodys, string(body))
	s.mu.Unlock()
	s.steps[min(n, len(s.steps)-1)](w, r)
}

// gaps returns the time between one attempt and the next.
func (s *script) gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(s.at); i++ {
		gaps = append(gaps, s.at[i].Sub(s.at[i-1]))
	}
	return gaps
}

func (s *script) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// says makes a handler that answers with a status and header fields.
func says(status int, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(fields); i += 2 {
			w.Header().Add(fields[i], fields[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, http.StatusText(status))
	}
}

func get(t *testing.T, ctx context.Context, rt http.RoundTripper) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return resp.StatusCode, string(text), nil
}

// neverLimiter refuses for good, as a limit does whose burst is below the cost.
type neverLimiter struct{}

func (neverLimiter) Take(context.Context, time.Time, ratelimit.Key, int, time.Duration) ratelimit.Decision {
	return ratelimit.Decision{Never: true}
}
func (neverLimiter) Policy(ratelimit.Key) ratelimit.Policy {
	return ratelimit.Policy{Rate: 1, Burst: 0}
}
func (neverLimiter) Validate() error { return nil }
