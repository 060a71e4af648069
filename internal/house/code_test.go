package house

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCodeInDocumentsIsRealCode looks for every Go block of every document among
// the lines of some Go file, whatever the indentation: what people copy compiles,
// and was run by a test.
func TestCodeInDocumentsIsRealCode(t *testing.T) {
	var sources []string
	for _, path := range files(t, ".go") {
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, flush(string(content)))
	}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language == "go" && !among(sources, flush(b.text)) {
				t.Errorf("%s:%d: this Go code stands in no Go file:\n%s", p.path, b.line, b.text)
			}
		}
	}
}

// flush takes the indentation and the spacing of comments away.
func flush(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}

func among(sources []string, code string) bool {
	for _, s := range sources {
		if strings.Contains(s, "\n"+code) {
			return true
		}
	}
	return false
}

var update = flag.Bool("update", false, "write what comes out into the documents")

// TestOutputInDocumentsIsWhatComesOut compares each block under a comment like
// "output: COMMAND" or "output: FILE EXAMPLE" with what that puts out. With -update
// it writes the block.
func TestOutputInDocumentsIsWhatComesOut(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.output == "" {
				continue
			}
			got := produced(t, b.output)
			switch {
			case got == b.text:
			case *update:
				rewrite(t, p.path, b, got)
			default:
				t.Errorf("%s:%d: %s now says\n%s", p.path, b.line, b.output, got)
			}
		}
	}
}

// rewrite replaces the text of a block.
func rewrite(t *testing.T, path string, b block, text string) {
	t.Helper()
	fence := "<!-- output: " + b.output + " -->\n```" + b.language + "\n"
	before := read(t, path)
	after := strings.Replace(before, fence+b.text+"```", fence+text+"```", 1)
	if err := os.WriteFile(filepath.Join(root, path), []byte(after), 0o644); err != nil || after == before {
		t.Errorf("%s: %s not written: %v", path, b.output, err)
	}
}

func produced(t *testing.T, by string) string {
	t.Helper()
	args := words(by)
	if args[0] != "go" {
		return exampleOutput(t, args[0], args[1])
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v", by, err)
	}
	return string(out)
}

// exampleOutput returns what a runnable Example promises to print.
func exampleOutput(t *testing.T, path, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(content), "func "+name+"() {")
	body, _, _ = strings.Cut(body, "\n}\n")
	_, comment, ok := strings.Cut(body, "// Output:\n")
	if !ok {
		t.Fatalf("%s has no %s with an output", path, name)
	}
	var b strings.Builder
	for line := range strings.Lines(comment + "\n") {
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "//"), " ") + "\n")
	}
	return b.String()
}

// words splits a command line at its spaces, except inside single quotes.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}
