// Package demo is what the example programs share: a simulated database, and a
// server that drains.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/headgate-go/headgate/admission"
)

// Database serves a bounded number of calls at a time, each in a fixed time;
// further calls queue inside it, as they do in a connection pool.
type Database struct {
	conns   chan struct{}
	latency time.Duration
}

// NewDatabase returns a database with the given number of connections.
func NewDatabase(width int, latency time.Duration) *Database {
	return &Database{conns: make(chan struct{}, width), latency: latency}
}

// Query blocks until the call is done or ctx ends.
func (d *Database) Query(ctx context.Context) error {
	select {
	case d.conns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.conns }()
	select {
	case <-time.After(d.latency):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Handler answers with text once the database has answered.
func (d *Database) Handler(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := d.Query(r.Context()); err != nil {
			http.Error(w, "database: too late", http.StatusGatewayTimeout)
			return
		}
		io.WriteString(w, text+"\n")
	}
}

// Announce prints the numbers in force, the pages for people, and what to try.
func Announce(addr string, gate *admission.Gate, pages ...string) {
	stats := gate.Stats()
	pool := stats.Pools[0]
	fmt.Printf("listening on http://%s\n", addr)
	for _, l := range stats.Limits {
		fmt.Printf("  %-9s %v requests a second for each caller, bursts of %d\n", l.Name, float64(l.Policy.Rate), l.Policy.Burst)
	}
	fmt.Printf("  %-9s %d to begin with; the law moves them\n", "slots", pool.Limit)
	fmt.Printf("  %-9s %d may wait\n", "queue", pool.Bound)
	for _, page := range pages {
		fmt.Printf("  %-9s http://%s%s\n", "page", addr, page)
	}
	fmt.Printf("\ntry:\n")
	fmt.Printf("  curl -i -X POST -H 'X-API-Key: acme-key' http://%s/checkout\n", addr)
	fmt.Printf("  curl -i -H 'X-API-Key: globex-key' http://%s/search\n", addr)
	flood := "  curl -sZ --no-progress-meter --parallel-max 90 -o /dev/null -w '%%{http_code}\\n' -H 'X-API-Key: %s' 'http://%s%s?[1-90]' | sort | uniq -c   # %s\n"
	fmt.Printf(flood, "acme-key", addr, "/export", "429: over its own rate")
	fmt.Printf(flood, "globex-key", addr, "/search", "503: more than the database can take")
}

// Serve listens until it is interrupted, then drains the gate and stops.
func Serve(addr string, h http.Handler, gate *admission.Gate) error {
	srv := &http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	drained := make(chan error, 1)
	go func() {
		<-stop.Done()
		grace, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		drained <- errors.Join(gate.Drain(grace), srv.Shutdown(grace))
	}()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}
