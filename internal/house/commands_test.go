package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCommandsInDocumentsExist checks what documents tell people to type and this
// project answers for: programs, their flags, make targets, steps of .ci/run.
func TestCommandsInDocumentsExist(t *testing.T) {
	checked := 0
	for _, p := range pages(t) {
		for _, line := range commands(p) {
			checked++
			if problem := wrong(t, line); problem != "" {
				t.Errorf("%s: %q: %s", p.path, line, problem)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d commands found", checked)
	}
}

var (
	inline    = regexp.MustCompile("`((?:go (?:run|test|tool) |make |bash \\.ci/run)[^`]*)`")
	separator = regexp.MustCompile(`\s*(?:&&|\|\||\||;|\s&(?:\s|$))\s*`)
)

// commands returns the commands of a page, one each, without comments.
func commands(p page) []string {
	var all []string
	for _, m := range inline.FindAllStringSubmatch(p.prose, -1) {
		all = append(all, m[1])
	}
	for _, b := range p.blocks {
		if b.language != "sh" && b.language != "bash" && b.language != "console" {
			continue
		}
		text := strings.ReplaceAll(b.text, "\\\n", " ")
		prompted := strings.HasPrefix(text, "$ ") || strings.Contains(text, "\n$ ")
		for line := range strings.Lines(text) {
			line, typed := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if prompted && !typed {
				continue // output
			}
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			all = append(all, separator.Split(line, -1)...)
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// wrong says what is wrong with a command, if anything.
func wrong(t *testing.T, line string) string {
	t.Helper()
	args := words(line)
	for len(args) > 0 && strings.Contains(args[0], "=") { // variables set for the command
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		return ""
	case args[0] == "make":
		return wrongMake(t, args[1:])
	case args[0] == "bash":
		return wrongStep(t, args[1:])
	case args[0] == "go":
		return wrongGo(t, args[1:])
	}
	return ""
}

func wrongMake(t *testing.T, args []string) string {
	for _, target := range args {
		if !strings.Contains(target, "=") && !strings.Contains(read(t, "Makefile"), "\n"+target+":") {
			return "no such target: " + target
		}
	}
	return ""
}

func wrongStep(t *testing.T, args []string) string {
	if len(args) == 0 || args[0] != ".ci/run" {
		return ""
	}
	for _, step := range args[1:] {
		if !strings.Contains(read(t, ".ci/run"), "\nstep_"+step+"()") {
			return "no such step: " + step
		}
	}
	return ""
}

func wrongGo(t *testing.T, args []string) string {
	dir := "."
	if len(args) > 2 && args[0] == "-C" {
		dir, args = args[1], args[2:]
	}
	for i, arg := range args {
		if args[0] == "doc" { // a name may follow the package
			arg = docName.ReplaceAllString(arg, "$1")
		}
		target := filepath.Join(root, dir, strings.TrimSuffix(arg, "..."))
		if arg != "." && !strings.HasPrefix(arg, "./") {
			continue
		}
		if _, err := os.Stat(target); err != nil {
			return "no such directory: " + arg
		}
		if args[0] == "run" {
			return wrongFlags(t, target, args[i+1:])
		}
	}
	return ""
}

var docName = regexp.MustCompile(`^(\./[a-z/]+)\..*$`)

var flagName = regexp.MustCompile(`^--?([a-z][a-z0-9-]*)`)

// commandImport is a package that reads the flags of a thin program.
var commandImport = regexp.MustCompile(`"github.com/headgate-go/headgate/(cmd/headgate/[a-z]+|internal/size|bench/(?:scenes|shared|sockets))"`)

// wrongFlags looks for the flags of a program among its string literals.
func wrongFlags(t *testing.T, dir string, args []string) string {
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(sources) == 0 {
		return "no program in " + dir
	}
	var code strings.Builder
	for _, path := range sources {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(content)
	}
	if !strings.Contains(code.String(), "package main\n") {
		return "no program in " + dir
	}
	for _, m := range commandImport.FindAllStringSubmatch(code.String(), -1) {
		inner, err := filepath.Glob(filepath.Join("../..", m[1], "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range inner {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(content)
		}
	}
	for _, arg := range args {
		if m := flagName.FindStringSubmatch(arg); m != nil && !strings.Contains(code.String(), `"`+m[1]+`"`) {
			return "no such flag: " + arg
		}
	}
	return ""
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
