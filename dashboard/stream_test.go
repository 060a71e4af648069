package dashboard_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/dashboard"
)

// served runs h on a server inside the bubble and returns a way to dial it.
func served(t *testing.T, h http.Handler) (dial func() net.Conn) {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return func() net.Conn {
		near, far := net.Pipe()
		l.conns <- far
		return near
	}
}

// pipes listens for pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// follow asks for the feed and reads until its first frame.
func follow(t *testing.T, conn net.Conn) *bufio.Reader {
	t.Helper()
	if _, err := conn.Write([]byte("GET /headgate/events HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	nextFrame(t, r)
	return r
}

func nextFrame(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the feed ended: %v", err)
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			return text
		}
	}
}

func TestAFeedEndsAndSaysWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := served(t, dashboard.Handler())
		conn := dial()
		r := follow(t, conn)
		began, frames := time.Now(), 1
		for {
			line, err := r.ReadString('\n')
			if err != nil || line == "0\r\n" {
				break
			}
			if strings.HasPrefix(line, "data: ") {
				frames++
			}
		}
		if took := time.Since(began); frames != 8 || took > 8*time.Second {
			t.Errorf("%d frames in %v", frames, took)
		}
	})
}

func TestTooManyFeedsPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := served(t, dashboard.Handler())
		for range 64 {
			conn := dial()
			follow(t, conn)
			defer conn.Close()
		}
		conn := dial()
		defer conn.Close()
		_, _ = conn.Write([]byte("GET /events HTTP/1.1\r\nHost: x\r\n\r\n"))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Fatalf("the 65th feed: %v, %v", resp, err)
		}
	})
}

func TestWithoutWriteDeadlinesThereIsNoFeed(t *testing.T) {
	if w := get(dashboard.Handler(), "/events"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a feed that could not be dropped: %d", w.Code)
	}
}
