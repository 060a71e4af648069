package admission_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// wire is a real http.Server and a real client joined by in-memory pipes, so that
// both live inside a bubble of fake time.
type wire struct {
	*http.Client
	server *http.Server
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
}

// newWire serves h; set may change the server before it starts.
func newWire(t *testing.T, h http.Handler, set func(*http.Server)) *wire {
	w := &wire{server: &http.Server{Handler: h}, conns: make(chan net.Conn), done: make(chan struct{})}
	if set != nil {
		set(w.server)
	}
	transport := &http.Transport{DialContext: w.dial, MaxIdleConnsPerHost: 100}
	w.Client = &http.Client{Transport: transport}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = w.server.Serve(w)
	}()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = w.server.Close()
		<-served
		time.Sleep(time.Minute) // fake: what the server still waits for, it waits for now
	})
	return w
}

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case w.conns <- server:
		return client, nil
	case <-w.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept, Close and Addr make the wire the server's listener.
func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.done) })
	return nil
}

func (w *wire) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// get asks for path and reads the whole answer.
func (w *wire) get(t *testing.T, path string) *http.Response {
	t.Helper()
	return w.send(t, http.MethodGet, path, nil)
}

func (w *wire) send(t *testing.T, method, path string, body io.Reader, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequest(method, "http://gate.test"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := w.Do(r)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return &http.Response{Header: http.Header{}}
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res
}
