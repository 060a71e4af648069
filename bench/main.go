// Command bench measures Headgate.
//
//	GOWORK=off go -C bench run . gauntlet [-json] [-plot DIR] [-only G1,G5] [-law throughput] [-seeds N] [-seed FIRST] [-trace] [-oracle FILE]
//	GOWORK=off go -C bench run . heap [-length 60s]
//	GOWORK=off go -C bench run . overhead [-json] [-plot DIR] [-short] [-bench admitted] [-only TEXT] [-keys 1,10000] [-repeats N] [-profile DIR]
//	GOWORK=off go -C bench run . rpc [-for 10s]
//	GOWORK=off go -C bench run . shared [-redis ADDR] [-rtt 1ms,25ms] [-length 5s] [-n 8] [-rate 1000] [-burst 100,500] [-only TEXT] [-json] [-report ../docs/replicas.md]
//	GOWORK=off go -C bench run . scenes [-scenes far-25ms,oom] [-for 12s] [-server valkey-server] [-json] [-report ../docs/replicas.md] [-list]
//	GOWORK=off go -C bench run . sockets [-subjects "headgate;chi"] [-scenarios slow-90] [-passes 3] [-seed 1] [-json] [-report FILE] [-list]
//	GOWORK=off go -C bench run . all [-report FILE] [-short]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/headgate-go/headgate/bench/gauntlet"
	"github.com/headgate-go/headgate/bench/heap"
	"github.com/headgate-go/headgate/bench/overhead"
	"github.com/headgate-go/headgate/bench/rpc"
	"github.com/headgate-go/headgate/bench/scenes"
	"github.com/headgate-go/headgate/bench/shared"
	"github.com/headgate-go/headgate/bench/sockets"
)

// command measures what its arguments say and writes its tables to w.
type command func(w io.Writer, args []string) error

var commands = map[string]command{
	"all":      runAll,
	"gauntlet": runGauntlet,
	"heap":     runHeap,
	"overhead": overhead.Main,
	"rpc":      rpc.Main,
	"scenes":   scenes.Main,
	"shared":   shared.Main,
	"sockets":  sockets.Main,
}

func main() {
	var run command
	if len(os.Args) > 1 {
		run = commands[os.Args[1]]
	}
	if run == nil {
		fmt.Fprintln(os.Stderr, "usage: bench overhead|gauntlet|heap|rpc|scenes|shared|sockets|all [flags]")
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func runGauntlet(w io.Writer, args []string) error {
	f := flag.NewFlagSet("gauntlet", flag.ExitOnError)
	asJSON := f.Bool("json", false, "write the rows as JSON")
	only := f.String("only", "", "comma-separated scenarios; empty: all")
	law := f.String("law", "", "comma-separated laws; empty: all")
	seeds := f.Int("seeds", 5, "how many seeds")
	first := f.Uint64("seed", gauntlet.ReportedSeeds, "the first seed; constants are picked on 1 to 100 alone")
	plots := f.String("plot", "", "write one SVG per scenario, of the first law, into this directory")
	trace := f.Bool("trace", false, "write every move of the first seed instead of the table")
	search := f.String("oracle", "", "search the oracle's limits and write them to this file")
	_ = f.Parse(args)

	scenarios, err := pick("scenario", gauntlet.Scenarios(), *only, func(s gauntlet.Scenario) string { return s.ID })
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program
	if *search != "" {
		return gauntlet.FindOracle(ctx, *search, scenarios, gauntlet.Seeds(1, *seeds))
	}
	entrants, err := pick("law", gauntlet.Entrants(), *law, func(e gauntlet.Entrant) string { return e.Name })
	if err != nil {
		return err
	}
	out, err := gauntlet.Run(ctx, scenarios, entrants, gauntlet.Seeds(*first, *seeds))
	if err != nil {
		return err
	}
	if *plots != "" {
		if err := gauntlet.WritePlots(*plots, scenarios, out, entrants[0].Name); err != nil {
			return err
		}
	}
	if *trace {
		gauntlet.WriteTrace(w, out)
		return nil
	}
	if *asJSON {
		return gauntlet.WriteJSON(w, out.Rows)
	}
	var names []string
	for _, e := range entrants {
		names = append(names, e.Name)
	}
	gauntlet.WriteTable(w, out.Rows, names)
	if ctx.Err() != nil {
		fmt.Fprintf(w, "interrupted: %d of %d scenarios\n", len(out.Records), len(scenarios))
	}
	fmt.Fprintf(w, "seeds reported %d to %d; constants and oracle limits were picked on seeds 1 to %d\n", *first, *first+uint64(*seeds)-1, gauntlet.TuningSeeds)
	return nil
}

// pick returns those whose name is in a comma-separated list, or all. A name that none
// has is an error.
func pick[T any](kind string, all []T, list string, name func(T) string) (out []T, err error) {
	if list == "" {
		return all, nil
	}
	for n := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(x T) bool { return name(x) == strings.TrimSpace(n) })
		if i < 0 {
			return nil, fmt.Errorf("no %s %q", kind, n)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// runHeap is G12, the one scenario that needs a real heap.
func runHeap(w io.Writer, args []string) error {
	f := flag.NewFlagSet("heap", flag.ExitOnError)
	length := f.Duration("length", time.Minute, "how long the queue stays full")
	_ = f.Parse(args)
	r, err := heap.Run(*length)
	if err != nil {
		return err
	}
	over := (int64(r.Peak) - int64(r.Base)) >> 20
	_, err = fmt.Fprintf(w, "G12 %d waited with 1 MiB bodies for %v: heap %d MiB over base, bound %d MiB; answers %v\n", r.Waiting, *length, over, heap.Bound>>20, r.Answers)
	return err
}
