// Package shared measures one ceiling held by many processes through Redis: what
// it costs, how exactly it holds, and what an outage does to it; beside the
// limiters people use today, on the same server, in the same run.
package shared

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
)

// silent keeps the client's log of failed connections out of the tables.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

type run struct {
	n, rate, burst int
	length         time.Duration
	rtt            time.Duration
	warm           time.Duration
	only           string
	srv            *server
	names          int
}

// Main runs the benchmark with the arguments of the command and writes its table.
func Main(w io.Writer, args []string) error {
	f := flag.NewFlagSet("shared", flag.ContinueOnError)
	r := &run{warm: 3 * time.Second}
	f.IntVar(&r.n, "n", 8, "instances")
	f.IntVar(&r.rate, "rate", 1000, "ceiling, requests a second")
	f.IntVar(&r.burst, "burst", 100, "burst")
	f.DurationVar(&r.length, "length", 5*time.Second, "length of a measurement")
	f.DurationVar(&r.rtt, "rtt", time.Millisecond, "round-trip time added to each call")
	f.StringVar(&r.only, "only", "", "only rows whose subject or load contains this")
	addr := f.String("redis", "", "address of a server; empty: start one")
	asJSON := f.Bool("json", false, "print rows as JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	redis.SetLogger(silent{})
	var err error
	if r.srv, err = startServer(*addr); err != nil {
		return err
	}
	defer r.srv.close()
	rows, err := r.all()
	if err != nil {
		return err
	}
	outages, err := r.outages()
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(w).Encode(struct {
			Rows    []row       `json:"rows"`
			Outages []outageRow `json:"outages"`
		}{rows, outages})
	}
	r.print(w, rows)
	printOutages(w, outages)
	return nil
}

func (r *run) all() ([]row, error) {
	var rows []row
	for _, l := range loads() {
		for _, s := range subjects() {
			if !strings.Contains(s.name+" / "+l.name, r.only) {
				continue
			}
			row, err := r.one(s, l)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
			fmt.Fprintf(os.Stderr, "%s, %s\n", s.name, l.name)
		}
	}
	return rows, nil
}

// one measures one subject under one load, after a warm-up under the same load.
func (r *run) one(s subject, l load) (row, error) {
	w := &wire{rtt: r.rtt}
	fleet, err := r.fleet(s, w)
	if err != nil {
		return row{}, err
	}
	defer func() {
		for _, in := range fleet {
			in.close()
		}
	}()
	var before int64
	warm := time.AfterFunc(r.warm, func() { before = w.trips.Load() })
	defer warm.Stop()
	all := r.load(fleet, l, r.warm+r.length)
	out := r.measure(all, w.trips.Load()-before)
	out.Subject, out.Load, out.Instances = s.name, l.name, r.n
	return out, nil
}

func (r *run) fleet(s subject, w *wire) ([]instance, error) {
	r.names++
	name := fmt.Sprintf("bench-%d-%d", os.Getpid(), r.names)
	var fleet []instance
	for range r.n {
		in, err := s.make(name, r.srv.client(w), r.rate, r.burst)
		if err != nil {
			return nil, err
		}
		fleet = append(fleet, in)
	}
	return fleet, nil
}

func (r *run) load(fleet []instance, l load, length time.Duration) (all []answer) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	for i, in := range fleet {
		wg.Go(func() {
			answers := l.offer(in, i, len(fleet), float64(r.rate), begin, length)
			mu.Lock()
			all = append(all, answers...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return all
}

func (r *run) print(w io.Writer, rows []row) {
	fmt.Fprintf(w, "%d instances share %d/s, burst %d; %v added to each trip; %v a row\n\n",
		r.n, r.rate, r.burst, r.rtt, r.length)
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(t, "load\t subject\t offered\t admitted\t trips/admitted\t trips/decision\t over 1 s\t over 100 ms\t utilisation\t p50\t p99\t p99.9\t errors")
	for _, x := range rows {
		fmt.Fprintf(t, "%s\t %s\t %d\t %d\t %.3f\t %.3f\t %+.1f %%\t %+.1f %%\t %.1f %%\t %v\t %v\t %v\t %d\n",
			x.Load, x.Subject, x.Offered, x.Admitted, x.PerAdmitted, x.PerDecision,
			100*x.Over1s, 100*x.Over100ms, 100*x.Utilisation, short(x.P50), short(x.P99), short(x.P999), x.Errors)
	}
	t.Flush()
}

func short(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}
