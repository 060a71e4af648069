// Upstream is a server that may be killed, stopped, slowed down, and told to reset some of
// its connections: what the soak puts behind the edge. It listens where its argument says.
package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

var (
	delay  atomic.Int64 // of each answer
	resets atomic.Int64 // of a hundred answers
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/delay", func(_ http.ResponseWriter, r *http.Request) {
		ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
		delay.Store(int64(time.Duration(ms) * time.Millisecond))
	})
	mux.HandleFunc("/resets", func(_ http.ResponseWriter, r *http.Request) {
		percent, _ := strconv.Atoi(r.URL.Query().Get("percent"))
		resets.Store(int64(percent))
	})
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		if pause(r) {
			io.WriteString(w, "hello\n")
		}
	})
	mux.HandleFunc("/upload", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err == nil && pause(r) {
			fmt.Fprintln(w, n)
		}
	})
	mux.HandleFunc("/events", events)
	mux.HandleFunc("/ws", socket)
	panic(http.ListenAndServe(os.Args[1], breaking(mux)))
}

// breaking resets the share of connections that it was told to, half of them in the
// middle of an answer.
func breaking(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/resets" || rand.Int64N(100) >= resets.Load() {
			next.ServeHTTP(w, r)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		if rand.IntN(2) == 0 {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		conn.Close()
	})
}

// pause says whether the client is still there after the delay.
func pause(r *http.Request) bool {
	select {
	case <-time.After(time.Duration(delay.Load())):
		return true
	case <-r.Context().Done():
		return false
	}
}

func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 20 {
		fmt.Fprintf(w, "data: %d\n\n", i)
		w.(http.Flusher).Flush()
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}

func socket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		kind, message, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}
