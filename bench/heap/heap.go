// Package heap measures what a full queue costs on a real server: scenario G12 of
// the gauntlet, which virtual time cannot show.
package heap

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
)

// The trial: who waits, with what, in front of a handler that ignores its context.
const (
	slots    = 8
	waiting  = 1000
	bodySize = 1 << 20
	Bound    = 64 << 20 // bytes of heap over the base, at most
)

// Result is the heap in bytes before anybody came and at its peak, both live after a
// collection, and how many waited at the peak.
type Result struct {
	Base, Peak uint64
	Waiting    int
	Answers    map[int]int // by status
}

// Run fills the queue with 1 MB requests, in ten seconds at most, and keeps it full
// for the given time.
func Run(lasting time.Duration) (Result, error) {
	over := make(chan struct{})
	gate := admission.MustNew(admission.Options{
		Pool:     admission.Pool{Limit: shed.Fixed(slots), MaxWait: lasting + time.Minute, MaxWaiting: waiting},
		Deadline: admission.Within(lasting + 2*time.Minute),
	})
	handler := gate.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Result{}, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()

	r := Result{Base: live(), Answers: make(map[int]int)}
	var clients sync.WaitGroup
	var mu sync.Mutex
	for range slots + waiting {
		clients.Go(func() {
			status := post(listener.Addr().String())
			mu.Lock()
			defer mu.Unlock()
			r.Answers[status]++
		})
	}
	for start := time.Now(); r.Waiting < waiting && time.Since(start) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		r.Waiting = depth(gate)
	}
	for start := time.Now(); time.Since(start) < lasting; time.Sleep(lasting / 20) {
		r.Peak = max(r.Peak, live())
	}
	close(over)
	clients.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return r, server.Shutdown(ctx)
}

func depth(gate *admission.Gate) (n int) {
	for _, waiting := range gate.Stats().Pools[0].Waiting {
		n += waiting
	}
	return n
}

// post sends one request over a bare connection, so that the client's side of it
// weighs next to nothing, and returns the answer's status.
func post(addr string) int {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0
	}
	defer func() { _ = c.Close() }()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", bodySize)
	go func() { _, _ = io.CopyN(c, zeros{}, bodySize) }()
	var proto string
	var status int
	if _, err := fmt.Fscan(c, &proto, &status); err != nil {
		return 0
	}
	return status
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
