// Package shared measures one ceiling held by many processes through Redis: what
// it costs, how exactly it holds, and what an outage does to it; beside the
// limiters people use today, on the same server, in the same run.
package shared

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/bench/rig"
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

// options are those of the command.
type options struct {
	run
	rtts, bursts string
	addr, report string
	json         bool
	command      string
}

// Main runs the benchmark with the arguments of the command and writes its table.
func Main(w io.Writer, args []string) error {
	f := flag.NewFlagSet("shared", flag.ContinueOnError)
	o := &options{run: run{warm: 3 * time.Second}, command: rig.Words(args)}
	f.IntVar(&o.n, "n", 8, "instances")
	f.IntVar(&o.rate, "rate", 1000, "ceiling, requests a second")
	f.StringVar(&o.bursts, "burst", "100", "bursts, separated by commas")
	f.DurationVar(&o.length, "length", 5*time.Second, "length of a measurement")
	f.StringVar(&o.rtts, "rtt", "1ms", "round-trip times added to each call, separated by commas")
	f.StringVar(&o.only, "only", "", "only rows whose subject or load contains this")
	f.StringVar(&o.addr, "redis", "", "address of a server; empty: start one")
	f.BoolVar(&o.json, "json", false, "print rows as JSON")
	f.StringVar(&o.report, "report", "", "write the tables between the marks of this file")
	if err := f.Parse(args); err != nil {
		return err
	}
	redis.SetLogger(silent{})
	var err error
	if o.srv, err = startServer(o.addr); err != nil {
		return err
	}
	defer o.srv.close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program
	return o.tables(ctx, w)
}

// tables measures at every distance, with every burst. What is whole when it is
// interrupted is written.
func (o *options) tables(ctx context.Context, w io.Writer) error {
	rtts, bursts, err := o.lists()
	if err != nil {
		return err
	}
	var out result
	var text strings.Builder
	for i, burst := range bursts {
		o.burst = burst
		for _, rtt := range rtts {
			o.rtt = rtt
			rows, err := o.all(ctx)
			if err != nil {
				return err
			}
			out.Rows = append(out.Rows, rows...)
			o.print(&text, rows)
		}
		if i > 0 {
			continue
		}
		o.rtt = rtts[0]
		if out.Outages, err = o.outages(ctx); err != nil {
			return err
		}
	}
	printOutages(&text, out.Outages)
	return errors.Join(o.write(w, out, text.String()), ctx.Err())
}

type result struct {
	Rows    []row       `json:"rows"`
	Outages []outageRow `json:"outages"`
}

func (o *options) write(w io.Writer, out result, text string) error {
	switch {
	case o.json:
		return json.NewEncoder(w).Encode(out)
	case o.report != "":
		return rig.Insert(o.report, "shared", "GOWORK=off go -C bench run . shared "+o.command, "```\n"+strings.TrimSpace(text)+"\n```\n")
	}
	_, err := io.WriteString(w, strings.TrimLeft(text, "\n"))
	return err
}

// lists reads the flags that are lists.
func (o *options) lists() (rtts []time.Duration, bursts []int, err error) {
	for text := range strings.SplitSeq(o.rtts, ",") {
		rtt, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || rtt < 0 {
			return nil, nil, fmt.Errorf("-rtt: %q is no distance", text)
		}
		rtts = append(rtts, rtt)
	}
	for text := range strings.SplitSeq(o.bursts, ",") {
		burst, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || burst < 1 {
			return nil, nil, fmt.Errorf("-burst: %q is no burst", text)
		}
		bursts = append(bursts, burst)
	}
	return rtts, bursts, nil
}

func (r *run) all(ctx context.Context) ([]row, error) {
	var rows []row
	for _, l := range loads() {
		for _, s := range subjects() {
			if ctx.Err() != nil || !strings.Contains(s.name+" / "+l.name, r.only) {
				continue
			}
			row, err := r.one(s, l)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
			fmt.Fprintf(os.Stderr, "%v, burst %d: %s, %s\n", r.rtt, r.burst, s.name, l.name)
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
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%d instances share %d/s, burst %d; %v added to each trip; %v a row\n\n",
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
