package answer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// pipes is a listener whose connections are made in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	dialed atomic.Int32
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	p.dialed.Add(1)
	return client
}

// refusingServer answers every request with e until the test ends.
func refusingServer(t *testing.T, e Refusal) *pipes {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: http.HandlerFunc(e.Write)}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(p) }()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
		time.Sleep(time.Second) // net/http lingers on connections it cut
	})
	return p
}

// The part of IF-05 that a refusal alone decides: short bodies keep the
// connection, long ones are not read and the client still sees the answer.
func TestClientsSendingBodiesSeeTheRefusal(t *testing.T) {
	for size, conns := range map[int64]int32{1 << 10: 1, 200 << 10: 1, 10 << 20: 3, 100 << 20: 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := refusingServer(t, Refusal{Reason: shed.Capacity, RetryAfter: time.Second})
				transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return server.dial(), nil }}
				defer transport.CloseIdleConnections()
				for range 3 {
					var sent atomic.Int64
					body := io.TeeReader(io.LimitReader(zeros{}, size), counter{&sent})
					req, err := http.NewRequest(http.MethodPost, "http://test/", body)
					if err != nil {
						t.Fatal(err)
					}
					req.ContentLength = size
					res, err := transport.RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					if res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" || res.Close != (conns > 1) {
						t.Errorf("got %d, %v, close %v", res.StatusCode, res.Header, res.Close)
					}
					synctest.Wait()
					if n := sent.Load(); size > unreadBodyMax && n > unreadBodyMax {
						t.Errorf("the server took %d bytes of the body", n)
					}
				}
				if n := server.dialed.Load(); n != conns {
					t.Errorf("%d connections; want %d", n, conns)
				}
			})
		})
	}
}

func TestChunkedBodiesDoNotHoldUpTheRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := refusingServer(t, Refusal{Reason: shed.Capacity}).dial()
		defer conn.Close()
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n") // and no chunk, ever
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != 503 || !res.Close || time.Since(start) != 0 {
			t.Errorf("%d, close %v after %v", res.StatusCode, res.Close, time.Since(start))
		}
	})
}

func TestNobodyIsAskedToContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := refusingServer(t, Refusal{Reason: shed.Capacity}).dial()
		defer conn.Close()
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.Contains(line, " 503 ") {
			t.Errorf("first line %q, %v; want the refusal, not 100", line, err)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) { c.n.Add(int64(len(b))); return len(b), nil }
