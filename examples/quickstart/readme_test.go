package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsThisProgram compares the README's quickstart with the marked
// region of main.go, so that what people copy is what compiles.
func TestReadmeShowsThisProgram(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, region, ok := strings.Cut(string(source), "\t// quickstart: begin\n")
	region, _, ok2 := strings.Cut(region, "\t// quickstart: end\n")
	if !ok || !ok2 {
		t.Fatal("main.go has no marked region")
	}
	var lines []string
	for line := range strings.Lines(region) {
		lines = append(lines, strings.TrimPrefix(line, "\t"))
	}
	if want := "```go\n" + strings.Join(lines, "") + "```\n"; !strings.Contains(string(readme), want) {
		t.Errorf("README.md does not contain the quickstart as it is:\n%s", want)
	}
}

func TestLookupKnowsTheDemoTenants(t *testing.T) {
	for key, tenant := range map[string]string{"acme-key": "acme", "globex-key": "globex"} {
		if c, ok := lookup(t.Context(), key); !ok || c.Key != tenant || !c.Verified {
			t.Errorf("lookup(%q) = %+v, %v", key, c, ok)
		}
	}
	if _, ok := lookup(t.Context(), "made-up"); ok {
		t.Error("a made-up key is known")
	}
}
