package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheWholePageInShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "benchmarks.md")
	if err := runAll(new(bytes.Buffer), []string{"-short", "-report", path}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Benchmarks", "| commit |", "## What a decision costs", "headgate/whole", "what must hold", "where another library is better", "## What the profiles say"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("no %q in the page:\n%s", want, page)
		}
	}
	drawing := filepath.Join(filepath.Dir(path), "benchmarks", "overhead-admitted.svg")
	if _, err := os.Stat(drawing); err != nil {
		t.Error(err)
	}
}
