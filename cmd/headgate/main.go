// Headgate is the kit as a command:
//
//	headgate edge -upstream http://127.0.0.1:3000   admission control before any HTTP server
//	headgate check -config edge.yaml                the numbers in force, or what is wrong with them
//	headgate size -rps 500 -p50 30ms -p99 120ms     which number goes where
//	headgate schema                                 the JSON Schema of the file
//	headgate completion bash                        what a shell completes
//	headgate version
//
// Each has -h.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	_ "time/tzdata" // zones of quotas, where the machine has none

	"github.com/headgate-go/headgate/cmd/headgate/edge"
	"github.com/headgate-go/headgate/internal/size"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// command is one of the words after the program's name.
type command struct {
	name, about string
	run         func(args []string, stdout, stderr io.Writer) error
}

func commands() []command {
	return []command{
		{"check", "the numbers in force, or what is wrong with them", check},
		{"size", "which number goes where, from a rate and a latency or from an access log",
			func(args []string, stdout, _ io.Writer) error { return size.Run(stdout, args) }},
		{"schema", "the JSON Schema of the file", schema},
		{"completion", "what bash, zsh or fish completes", completion},
		{"version", "the version", func(_ []string, stdout, _ io.Writer) error {
			_, err := fmt.Fprintln(stdout, version())
			return err
		}},
	}
}

func run(args []string, stdout, stderr io.Writer) int {
	word := ""
	if len(args) > 0 {
		word, args = strings.TrimPrefix(strings.TrimPrefix(args[0], "-"), "-"), args[1:]
	}
	switch word {
	case "edge":
		return edge.Main(args)
	case "", "help", "h":
		fmt.Fprint(stdout, usage())
		return 0
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == word })
	if i < 0 {
		fmt.Fprintf(stderr, "headgate: no command %q\n\n%s", word, usage())
		return 2
	}
	if err := all[i].run(args, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "headgate %s: %v\n", word, err)
		return 1
	}
	return 0
}

func usage() string {
	text := "usage: headgate COMMAND [flags]\n\n  edge        admission control before any HTTP server\n"
	for _, c := range commands() {
		text += fmt.Sprintf("  %-11s %s\n", c.name, c.about)
	}
	return text + "\nheadgate COMMAND -h tells the flags.\n"
}

// check is the edge's -check, which also takes the file alone.
func check(args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append([]string{"-config"}, args...)
	}
	return edge.Run(context.Background(), nil, append([]string{"-check"}, args...), stdout, stderr)
}

func schema(_ []string, stdout, _ io.Writer) error {
	text, err := edge.Schema()
	if err != nil {
		return err
	}
	_, err = stdout.Write(text)
	return err
}

// version is the module's, or the commit that the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "headgate (unknown)"
	}
	text, revision := "headgate "+info.Main.Version, ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return text + revision + " " + info.GoVersion
}
