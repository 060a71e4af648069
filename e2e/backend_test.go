package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// backend is the server behind the edge: one path for each kind of behaviour.
type backend struct {
	*httptest.Server
	running atomic.Int64 // in handlers
	served  atomic.Int64
}

func newBackend(t testing.TB) *backend {
	t.Helper()
	b := new(backend)
	b.Server = httptest.NewUnstartedServer(b.handler())
	b.Start()
	t.Cleanup(b.Close)
	return b
}

func (b *backend) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello\n") })
	mux.HandleFunc("/slow", slow)
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("/upload", upload)
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	mux.HandleFunc("/large", large)
	mux.HandleFunc("/events", events)
	mux.HandleFunc("/hints", hints)
	mux.HandleFunc("/trailer", trailer)
	mux.HandleFunc("/abort", abort)
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) { r.Header.Write(w) })
	mux.HandleFunc("/ws", echoSocket)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.running.Add(1)
		defer b.running.Add(-1)
		defer b.served.Add(1)
		mux.ServeHTTP(w, r)
	})
}

// number returns a number in the query, or fallback.
func number(r *http.Request, name string, fallback int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return fallback
}

func slow(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Duration(number(r, "ms", 500)) * time.Millisecond):
		io.WriteString(w, "done\n")
	case <-r.Context().Done():
	}
}

func upload(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, "broken upload", http.StatusBadRequest)
		return
	}
	fmt.Fprintln(w, n)
}

// large answers with more than all buffers on the way hold.
func large(w http.ResponseWriter, r *http.Request) {
	piece := make([]byte, 64<<10)
	for range number(r, "pieces", 1024) {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// events sends numbered events and says when each was flushed.
func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	every := time.Duration(number(r, "ms", 200)) * time.Millisecond
	control := http.NewResponseController(w)
	for i := range number(r, "n", 3) {
		fmt.Fprintf(w, "id: %d\ndata: %d\n\n", i, time.Now().UnixNano())
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-time.After(every):
		case <-r.Context().Done():
			return
		}
	}
}

func hints(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Link", "</style.css>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	w.Header().Set("X-Final", "yes")
	io.WriteString(w, "final\n")
}

func trailer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Trailer", "X-Sum")
	io.WriteString(w, "body\n")
	w.(http.Flusher).Flush()
	w.Header().Set("X-Sum", "42")
}

// abort breaks off in the middle of an answer.
func abort(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	io.WriteString(w, "half")
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func echoSocket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, message, err := c.Read(context.WithoutCancel(r.Context()))
		if err != nil {
			return
		}
		if err := c.Write(r.Context(), kind, message); err != nil {
			return
		}
	}
}
