// Package scenes plays what happens to real stores, with real clients: distance, jitter,
// outages of every kind, failovers of a Cluster and of Sentinels. Several limiters share
// a ceiling meanwhile, under demand above it, and what they let through is held against
// the bound that the scene has.
package scenes

import (
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
	"time"

	"github.com/redis/go-redis/v9"
)

// silent keeps the client's log of failed connections out of the tables.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// options are those of the command.
type options struct {
	scenes, program, report string
	length                  time.Duration
	list, json              bool
	args                    []string
}

// Main is the command: see -help.
func Main(w io.Writer, args []string) error {
	f := flag.NewFlagSet("scenes", flag.ContinueOnError)
	o := options{args: args}
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
	page := &page{command: strings.Join(args, " ")}
	played := o.play(ctx, chosen, page)
	return errors.Join(o.write(w, page), played)
}

// play plays the scenes one after another. What is whole when it is interrupted is kept.
func (o *options) play(ctx context.Context, chosen []Scene, p *page) error {
	for i, s := range chosen {
		program := o.program
		if s.Program != "" {
			program = s.Program
		}
		if _, err := exec.LookPath(program); err != nil && s.Program != "" {
			p.missing = append(p.missing, s)
			fmt.Fprintf(os.Stderr, "%s: no %s on the PATH\n", s.Name, program)
			continue
		}
		fmt.Fprintf(os.Stderr, "%d of %d: %s, %s\n", i+1, len(chosen), s.Name, s.Title)
		r, err := s.play(ctx, program, o.length)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: %d of %d scenes", i, len(chosen))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		p.scenes = append(p.scenes, s)
		for _, x := range r.rows() {
			p.rows = append(p.rows, x)
			fmt.Fprintln(os.Stderr, "   ", strings.Join(x.cells(), "  "))
		}
		fmt.Fprintf(os.Stderr, "    longest stall of this program %v\n", r.stall.Round(time.Millisecond))
	}
	return nil
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
