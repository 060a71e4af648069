package main

import (
	"flag"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/headgate-go/headgate/ratelimit"
)

var update = flag.Bool("update", false, "write the output into README.md")

// TestReadmeShowsRealOutput runs the commands of README.md against a fresh service,
// in fake time, and compares what they print.
func TestReadmeShowsRealOutput(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h, _ := service()
		sh := shell{t, h}
		got, commands := sh.replay(string(readme))
		if commands < 20 {
			t.Errorf("only %d commands found", commands)
		}
		if *update {
			if err := os.WriteFile("README.md", []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		compare(t, string(readme), got)
	})
}

// compare checks line by line, to name the first that differs.
func compare(t *testing.T, want, got string) {
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wants), len(gots)) {
		if wants[i] != gots[i] {
			t.Fatalf("README.md:%d says\n\t%s\nand the service\n\t%s", i+1, wants[i], gots[i])
		}
	}
	if len(wants) != len(gots) {
		t.Errorf("README.md has %d lines, replayed %d", len(wants), len(gots))
	}
}

func TestPlansOfTheCustomersExist(t *testing.T) {
	opts := options(settings{freeBurst: 5})
	for key, c := range customers {
		if got, ok := lookup(t.Context(), key); !ok || got != c {
			t.Errorf("lookup(%q) = %+v, %v", key, got, ok)
		}
		if p := opts.Rate.Policy(ratelimit.Key{ID: c.Key, Plan: c.Plan}); p.Name != "plan" {
			t.Errorf("%s: policy %+v", key, p)
		}
	}
}
