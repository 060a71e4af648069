package sockets

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// writePage writes a page of tables, with a plot for each scenario in the folder
// "overload" beside it.
func (b *board) writePage(path string) error {
	folder := filepath.Join(filepath.Dir(path), "overload")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var page strings.Builder
	fmt.Fprintf(&page, pageHead, b.command, runtime.Version(), runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly), b.often())
	for _, s := range b.subjects {
		fmt.Fprintf(&page, "| %s | %s |\n", s.Name, s.Does)
	}
	page.WriteString("\n")
	for i := range b.scenarios {
		s := &b.scenarios[i]
		plot := filepath.Join(folder, s.Name+".svg")
		if err := os.WriteFile(plot, []byte(b.plot(s)), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&page, "## %s\n\n![served by class over time](overload/%s.svg)\n\n```\n", s.Title, s.Name)
		if err := b.writeTable(&page, s); err != nil {
			return err
		}
		page.WriteString("```\n\n")
	}
	return os.WriteFile(path, []byte(strings.TrimSpace(page.String())+"\n"), 0o644)
}

// often says how many passes stand behind a figure.
func (b *board) often() string {
	if b.passes == 1 {
		return "one pass each"
	}
	return fmt.Sprintf("medians of %d passes", b.passes)
}

const pageHead = "# The overload, on real sockets\n\n" +
	"Made by one command, which anybody can run:\n\n" +
	"```sh\nGOWORK=off go -C bench run . sockets %s\n```\n\n" +
	"Without a choice of subjects and scenarios it runs all of them, in about an hour a pass; `-list` names them.\n\n" +
	"Each subject runs in a process of its own, with the same routes over the same backend. A client sends\n" +
	"requests at random instants, whether or not earlier ones have been answered, and gives up on each after\n" +
	"a second. The share that is served is of what was possible: the capacity, given to the highest level\n" +
	"first, but for the twentieth that the lowest waiting level is owed, and inside a level to the callers in\n" +
	"equal parts. Goodput is the slot time of what was served over what could have been used. p50 and p99, in\n" +
	"ms, are those of the first class that was served; \"refusal\" is the slowest class's 95th and 99th\n" +
	"percentile until a refusal, in ms, and the 99th of what came after the phase's first two seconds;\n" +
	"\"recovery\" is how long into the last phase it takes until 95 %% are served for good.\n\n" +
	"%s, %d cores, %s; %s.\n\n" +
	"| subject | wired as |\n|---|---|\n"
