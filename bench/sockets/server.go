package sockets

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// server is one subject in a process of its own: a port for the traffic, and one for
// the program that measures.
type server struct {
	backend *backend
	peak    peaks
}

// vitals are what a server says of itself at the end.
type vitals struct {
	Done, Wasted []int64 // pieces of the backend, by phase
	HeapMB       float64 // at most
	Goroutines   int64   // at most
	CPUSeconds   float64
}

// serve runs a subject until in is closed. It writes the two addresses to out.
func serve(in io.Reader, out io.Writer, subject Subject, s *Scenario) error {
	srv := &server{backend: newBackend(s)}
	h, err := subject.build(s, srv.routes())
	if err != nil {
		return err
	}
	traffic, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control := httptest.NewServer(srv.control())
	defer control.Close()
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = web.Serve(traffic) }()
	defer web.Close()
	stop := make(chan struct{})
	defer close(stop)
	go srv.peak.watch(stop)
	fmt.Fprintf(out, "http://%v %s\n", traffic.Addr(), control.URL)
	_, err = io.Copy(io.Discard, in) // the end of the parent ends this one too
	return err
}

// routes are the service: three routes over one backend.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for route := range levels {
		mux.HandleFunc("/"+route, s.work)
	}
	return mux
}

func (s *server) work(w http.ResponseWriter, r *http.Request) {
	size, _ := strconv.ParseFloat(r.Header.Get("X-Size"), 64)
	sent, _ := strconv.ParseInt(r.Header.Get("X-Sent"), 10, 64) // one machine, one clock
	if s.backend.do(r.Context(), size, time.Unix(0, sent).Add(Patience)) != nil {
		w.WriteHeader(http.StatusGatewayTimeout)
		return
	}
	_, _ = io.WriteString(w, "done\n")
}

func levelOf(r *http.Request) priority.Level { return levels[strings.TrimPrefix(r.URL.Path, "/")] }

// control changes the phase and reports.
func (s *server) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /phase/{i}", func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(r.PathValue("i"))
		if err != nil || i < 0 || i >= len(s.backend.counts) {
			http.Error(w, "no such phase", http.StatusBadRequest)
			return
		}
		s.backend.phase.Store(int32(i))
	})
	mux.HandleFunc("GET /vitals", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(s.vitals())
	})
	return mux
}

func (s *server) vitals() (v vitals) {
	for i := range s.backend.counts {
		c := &s.backend.counts[i]
		v.Done, v.Wasted = append(v.Done, c.done.Load()), append(v.Wasted, c.wasted.Load())
	}
	v.HeapMB = float64(s.peak.heap.Load()) / (1 << 20)
	v.Goroutines = s.peak.goroutines.Load()
	v.CPUSeconds = cpuSeconds()
	return v
}

// peaks are the most of heap and goroutines that were seen.
type peaks struct {
	heap       atomic.Uint64
	goroutines atomic.Int64
}

func (p *peaks) watch(stop <-chan struct{}) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			metrics.Read(sample)
			p.heap.Store(max(p.heap.Load(), sample[0].Value.Uint64()))
			p.goroutines.Store(max(p.goroutines.Load(), int64(runtime.NumGoroutine())))
		}
	}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
