package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/headgate-go/headgate/bench/overhead"
	"github.com/headgate-go/headgate/bench/shared"
)

// chapter is one command's part of the page.
type chapter struct {
	title, text string
	run         command
	args        []string
	drawings    []string // beside the page
}

// chapters of the page; drawings go into a directory of their own beside it. A
// short run measures only what takes seconds and needs nothing but Go.
func chapters(drawings string, short bool) []chapter {
	cost := chapter{
		title: "What a decision costs",
		text: "Every subject decides about the same request under changing keys, in random order; it is held to its\n" +
			"premises first (keys told apart, the status of every answer, headers there). In each of ten repeats a\n" +
			"subject's turn follows one of the bare pieces, and ratios are between the two. On one core a request\n" +
			"takes the processor's time, collector included; on two it takes the time that passes, of both together.\n" +
			"`bare/pieces` is a map of `rate.Limiter` under a mutex, then a channel as a semaphore, without a\n" +
			"handler, a header or a figure; `headgate/whole` is the quickstart with metrics. Looking a key up is the\n" +
			"service's own work, and as cheap here as reading the header.",
		run: overhead.Main, args: []string{"-plot", drawings},
		drawings: []string{"overhead-admitted.svg", "overhead-refused-429.svg", "overhead-refused-503.svg"},
	}
	if short {
		cost.args = append(cost.args, "-short")
		return []chapter{cost}
	}
	return []chapter{cost, {
		title: "How well the limit is found",
		text: "Simulated backends and clients, in virtual time: the same requests for every law, and an oracle that\n" +
			"knows the best fixed number of each phase. The first law is the default; a ✗ marks where another law\n" +
			"misses the bar. Where another law's ratio is above the default's, it is better there.",
		run: runGauntlet,
	}, {
		title: "One ceiling for many processes",
		text: "Eight instances share a ceiling through one Redis, a millisecond away, beside libraries that call it\n" +
			"for each decision. Overshoot is against what one bucket in memory would let through.",
		run: shared.Main,
	}}
}

// notes are what profiles say about the figures.
//
//go:embed notes.md
var notes string

// runAll measures everything and writes the page.
func runAll(w io.Writer, args []string) error {
	f := flag.NewFlagSet("all", flag.ContinueOnError)
	path := f.String("report", "", "write the page to this file, named from the root of the repository, and its drawings beside it; empty: standard output")
	short := f.Bool("short", false, "a few seconds of overhead alone")
	if err := f.Parse(args); err != nil {
		return err
	}
	drawings, err := drawingsOf(path)
	if err != nil {
		return err
	}
	page := new(bytes.Buffer)
	writeHead(page, time.Now())
	for _, c := range chapters(drawings, *short) {
		if err := c.write(page, filepath.Base(drawings)); err != nil {
			return fmt.Errorf("%s: %w", c.title, err)
		}
	}
	fmt.Fprintf(page, "\n%s", notes)
	if *path == "" {
		_, err := page.WriteTo(w)
		return err
	}
	return os.WriteFile(*path, page.Bytes(), 0o644)
}

// drawingsOf makes the path one from the root of the repository, and returns the
// directory of that name beside it, for drawings.
func drawingsOf(path *string) (string, error) {
	if *path == "" {
		return os.MkdirTemp("", "headgate-bench-")
	}
	if !filepath.IsAbs(*path) {
		root, err := repository()
		if err != nil {
			return "", err
		}
		*path = filepath.Join(root, *path)
	}
	return strings.TrimSuffix(*path, filepath.Ext(*path)), nil
}

// repository returns its root: where the workspace file is.
func repository() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.work")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("not inside the repository: no go.work above")
		}
	}
	return "", err
}

func (c *chapter) write(page io.Writer, drawings string) error {
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n```\n", c.title, c.text)
	var table bytes.Buffer
	if err := c.run(&table, c.args); err != nil {
		return err
	}
	for line := range strings.Lines(strings.TrimLeft(table.String(), "\n")) {
		fmt.Fprintln(page, strings.TrimRight(line, " \n"))
	}
	fmt.Fprint(page, "```\n")
	for _, name := range c.drawings {
		fmt.Fprintf(page, "\n![%s](%s/%s)\n", strings.TrimSuffix(name, ".svg"), drawings, name)
	}
	return nil
}

// writeHead says what the figures are figures of.
func writeHead(page io.Writer, now time.Time) {
	fmt.Fprintf(page, `# Benchmarks

Made by one command, beside everybody else's:

`+"```sh\nGOWORK=off go -C bench run . all -report docs/benchmarks.md\n```"+`

Absolute figures do not travel between machines; ratios between subjects of one run nearly do.

| | |
|---|---|
| machine | %s, %d cores |
| Go | %s %s/%s |
| commit | %s |
| date | %s |
| load of the machine when it began | %s |
`, processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, commit(), now.UTC().Format("2006-01-02"), load())
}

// processor returns the model's name, where the system tells.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := strings.Cut(string(info), "model name")
	name, _, _ := strings.Cut(rest, "\n")
	return cmp.Or(strings.Trim(name, " \t:"), runtime.GOARCH)
}

// load returns how many wanted a core in the last minute.
func load() string {
	avg, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(avg), " ")
	return cmp.Or(first, "unknown")
}

// commit names what was measured, and says when it was not quite that.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(hash))
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", "*.go").Run() != nil {
		name += ", with changes"
	}
	return name
}
