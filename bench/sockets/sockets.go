// Package sockets compares ways to protect a server on real sockets: each in a process
// of its own, behind the same routes and the same backend, under the same open-loop
// load.
package sockets

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
	"strings"
	"time"
)

// Main is the command: see -help.
func Main(w io.Writer, args []string) error {
	f := flag.NewFlagSet("sockets", flag.ContinueOnError)
	o := options{}
	f.StringVar(&o.subjects, "subjects", "", "subjects, separated by semicolons, each by the start of its name; empty: all")
	f.StringVar(&o.scenarios, "scenarios", "", "comma-separated scenarios; empty: all")
	f.IntVar(&o.passes, "passes", 3, "how often each subject meets each scenario; figures are medians")
	f.Uint64Var(&o.seed, "seed", 1, "of the first pass; the others follow")
	f.BoolVar(&o.json, "json", false, "write the rows as JSON")
	f.StringVar(&o.report, "report", "", "write the page to this file, and its plots beside it")
	f.BoolVar(&o.list, "list", false, "list subjects and scenarios")
	f.BoolVar(&o.serve, "serve", false, "serve the one subject in the one scenario that are named, until standard input ends")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected %q", f.Arg(0))
	}
	return o.run(w)
}

// options are those of the command.
type options struct {
	subjects, scenarios string
	passes              int
	seed                uint64
	json, list, serve   bool
	report              string
}

// String returns the options as they are typed after the command's name.
func (o options) String() string {
	words := []string{fmt.Sprintf("-passes %d -seed %d", o.passes, o.seed)}
	for _, f := range []struct{ name, value string }{{"subjects", o.subjects}, {"scenarios", o.scenarios}, {"report", o.report}} {
		if f.value != "" {
			words = append(words, fmt.Sprintf("-%s %q", f.name, f.value))
		}
	}
	return strings.Join(words, " ")
}

func (o options) run(w io.Writer) error {
	subjects, err := choose(Subjects(), split(o.subjects, ";"), func(s Subject) string { return s.Name })
	if err != nil {
		return fmt.Errorf("-subjects: %w", err)
	}
	scenarios, err := choose(Scenarios(), split(o.scenarios, ","), func(s Scenario) string { return s.Name })
	switch {
	case err != nil:
		return fmt.Errorf("-scenarios: %w", err)
	case o.passes < 1:
		return errors.New("-passes: must be at least 1")
	case o.list:
		return list(w, subjects, scenarios)
	case o.serve:
		return serve(os.Stdin, w, subjects[0], &scenarios[0])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b := &board{scenarios: scenarios, subjects: subjects, passes: o.passes, seed: o.seed, progress: os.Stderr, program: itself, command: o.String()}
	played := b.play(ctx)
	return errors.Join(o.write(w, b), played)
}

// write tells what was measured, whole or not.
func (o options) write(w io.Writer, b *board) error {
	if o.report != "" {
		if err := b.writePage(o.report); err != nil {
			return err
		}
	}
	if o.json {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(b.rows())
	}
	return b.writeTables(w)
}

// itself runs this program as the server of a pass. An interrupt is for the parent: it
// ends the server with its input.
func itself(ctx context.Context, p pass) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "sockets", "-serve", "-subjects", p.subject.Name, "-scenarios", p.scenario.Name)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	return cmd
}

func list(w io.Writer, subjects []Subject, scenarios []Scenario) error {
	for _, s := range scenarios {
		fmt.Fprintf(w, "%-12s %s\n", s.Name, s.Title)
	}
	fmt.Fprintln(w)
	for _, s := range subjects {
		fmt.Fprintf(w, "%-30s %s\n", s.Name, s.Does)
	}
	return nil
}

func split(text, by string) (names []string) {
	for name := range strings.SplitSeq(text, by) {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// choose returns those that are named, or all when none is. A name that is whole stands
// for one; the start of names stands for all of them.
func choose[T any](all []T, names []string, nameOf func(T) string) (some []T, err error) {
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		found := matching(all, name, nameOf)
		if len(found) == 0 {
			return nil, fmt.Errorf("there is no %q; see -list", name)
		}
		some = append(some, found...)
	}
	return some, nil
}

func matching[T any](all []T, name string, nameOf func(T) string) (found []T) {
	for _, x := range all {
		switch {
		case nameOf(x) == name:
			return []T{x}
		case strings.HasPrefix(nameOf(x), name):
			found = append(found, x)
		}
	}
	return found
}
