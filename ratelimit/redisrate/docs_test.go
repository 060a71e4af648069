package redisrate

import (
	"os"
	"strings"
	"testing"
)

// What docs/replicas.md shows is code that runs in the examples.
func TestPageShowsCodeThatRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/replicas.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for _, name := range []string{"example_test.go", "semaphore/example_test.go"} {
		examples, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(examples)) {
			lines[strings.TrimSpace(line)] = true
		}
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	for _, b := range blocks {
		code, _, _ := strings.Cut(b, "```")
		for line := range strings.Lines(code) {
			if line = strings.TrimSpace(line); !lines[line] {
				t.Errorf("%q is not in the examples", line)
			}
		}
	}
	if len(blocks) == 0 {
		t.Error("no code found")
	}
}
