// Upstream is a server that may be killed, stopped and slowed down: what the soak
// puts behind the edge. It listens where its argument says.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

var delay atomic.Int64 // of each answer

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/delay", func(_ http.ResponseWriter, r *http.Request) {
		ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
		delay.Store(int64(time.Duration(ms) * time.Millisecond))
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
	panic(http.ListenAndServe(os.Args[1], mux))
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
