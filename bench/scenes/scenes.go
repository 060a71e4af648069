// Package scenes plays what happens to real stores, with real clients: distance, jitter,
// outages of every kind, failovers of a Cluster and of Sentinels. Several limiters share
// a ceiling meanwhile, under demand above it, and what they let through is held against
// the bound that the scene has.
package scenes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate-go/headgate/bench/rig"
)

// silent keeps the client's log of failed connections out of the tables.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// options are those of the command.
type options struct {
	scenes, program, report string
	length                  time.Duration
	list, json              bool
}

// Main is the command: see -help.
func Main(w io.Writer, args []string) error {
	f := flag.NewFlagSet("scenes", flag.ContinueOnError)
	o := options{}
	f.StringVar(&o.scenes, "scenes", "", "comma-separated scenes; empty: all")
	f.DurationVar(&o.length, "for", 12*time.Second, "how long a scene lasts, unless it needs longer")
	f.StringVar(&o.program, "server", "redis-server", "the server's program, also as Sentinel: valkey-server works too")
	f.StringVar(&o.report, "report", "", "write the tables between the marks of this file")
	f.BoolVar(&o.list, "list", false, "list the scenes")
	f.BoolVar(&o.json, "json", false, "write the rows as JSON")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected %q", f.Arg(0))
	}
	redis.SetLogger(silent{})
	chosen, err := choose(Scenes(), o.scenes)
	switch {
	case err != nil:
		return err
	case o.length < 4*time.Second:
		return errors.New("-for: must be at least 4s")
	case o.list:
		for _, s := range chosen {
			fmt.Fprintf(w, "%-18s %s\n", s.Name, s.Title)
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program
	page := &page{command: rig.Words(args)}
	played := o.play(ctx, chosen, page)
	return errors.Join(o.write(w, page), played)
}

// play plays the scenes one after another, but for those that are long, which play beside
// the others. What is whole when it is interrupted is kept.
func (o *options) play(ctx context.Context, chosen []Scene, p *page) error {
	records := make([]*record, len(chosen))
	failed := make([]error, len(chosen))
	one := func(i int) {
		fmt.Fprintf(os.Stderr, "%d of %d: %s, %s\n", i+1, len(chosen), chosen[i].Name, chosen[i].Title)
		records[i], failed[i] = chosen[i].play(ctx, cmp.Or(chosen[i].Program, o.program), o.length)
		if failed[i] == nil {
			records[i].tell(os.Stderr)
		}
	}
	var long sync.WaitGroup
	for i, s := range chosen {
		if s.Least > 0 {
			long.Go(func() { one(i) })
		}
	}
	for i, s := range chosen {
		if _, err := exec.LookPath(s.Program); s.Program != "" && err != nil {
			p.missing = append(p.missing, s)
		} else if s.Least == 0 && ctx.Err() == nil {
			one(i)
		}
	}
	long.Wait()
	for i, r := range records {
		if r != nil && failed[i] == nil {
			p.scenes = append(p.scenes, chosen[i])
			p.rows = append(p.rows, r.rows()...)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %d of %d scenes", len(p.scenes), len(chosen))
	}
	return errors.Join(failed...)
}

// tell writes a scene's rows as progress.
func (r *record) tell(w io.Writer) {
	for _, x := range r.rows() {
		fmt.Fprintf(w, "    %s: %s\n", r.scene.Name, strings.Join(x.cells(), "  "))
	}
	fmt.Fprintf(w, "    longest stall of this program %v\n", r.stall.Round(time.Millisecond))
}

// write tells what was measured, whole or not.
func (o *options) write(w io.Writer, p *page) error {
	if o.json {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(p.rows)
	}
	if o.report == "" {
		_, err := io.WriteString(w, p.text())
		return err
	}
	return p.insert(o.report)
}

// choose returns the scenes that are named, in their order, or all.
func choose(all []Scene, names string) (some []Scene, err error) {
	if names == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(s Scene) bool { return s.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("-scenes: there is no %q; see -list", name)
		}
		some = append(some, all[i])
	}
	return some, nil
}
