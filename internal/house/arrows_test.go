package house

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/headgate-go/headgate"

// rooms lists, for each package, what it may import beyond the standard library,
// transitively. A package missing here fails the test. Packages of other modules are
// held by their own go.mod and by the linter.
var rooms = map[string][]string{
	"priority":                 {},
	"shed":                     {"priority"},
	"shed/pressure":            {"shed", "priority"},
	"internal/entry":           {"shed", "priority"},
	"queue":                    {"internal/entry", "shed", "priority"},
	"ratelimit":                {"ratelimit/internal/table", "golang.org/x/time/rate"},
	"ratelimit/internal/table": {"golang.org/x/time/rate"},
	"ratelimit/window":         {"ratelimit", "golang.org/x/time/rate", "github.com/go-chi/httprate", "github.com/klauspost/cpuid/v2", "github.com/zeebo/xxh3"},
	"admission": {"admission/caller", "admission/internal/answer", "admission/internal/spelling", "admission/internal/top", "admission/internal/writer",
		"queue", "internal/entry", "shed", "priority", "ratelimit", "golang.org/x/time/rate"},
	"admission/caller":            {"priority"},
	"admission/internal/answer":   {"shed", "priority", "ratelimit", "golang.org/x/time/rate"},
	"admission/internal/spelling": {},
	"admission/internal/top":      {"admission/caller", "shed", "priority"},
	"admission/internal/writer":   {},
	"admission/admissiontest": {"admission", "admission/caller", "admission/internal/answer", "admission/internal/spelling", "admission/internal/top",
		"admission/internal/writer", "queue", "internal/entry", "shed", "priority", "ratelimit", "golang.org/x/time/rate"},
	"outbound":                 {"outbound/pacer", "outbound/verdict", "queue", "internal/entry", "shed", "priority", "ratelimit", "golang.org/x/time/rate"},
	"outbound/pacer":           {"outbound/verdict", "queue", "internal/entry", "shed", "priority", "ratelimit", "golang.org/x/time/rate"},
	"outbound/verdict":         {"shed", "priority"},
	"outbound/internal/oracle": {"golang.org/x/time/rate"},
	"outbound/internal/awsgen": {},
}

// without lists what a package must not link, whatever it imports.
var without = map[string][]string{
	"shed":           {"net/http", "database/sql", "runtime/metrics"},
	"internal/entry": {"net/http", "database/sql", "runtime/metrics"},
	"queue":          {"net/http", "database/sql"},
	"ratelimit":      {"net/http", "database/sql"},
	"outbound/pacer": {"net/http", "database/sql"},
	"admission":      {"database/sql"},
}

type listed struct {
	ImportPath string
	Standard   bool
	Deps       []string
	Module     struct{ Path string }
}

func TestImportsFollowTheArrows(t *testing.T) {
	packages := list(t, module+"/...")
	for path, p := range packages {
		room := strings.TrimPrefix(path, module+"/")
		if p.Module.Path != module || open(room) { // what a nested module needs is in its own go.mod
			continue
		}
		allowed, known := rooms[room]
		if !known {
			t.Errorf("%s: no such room; add it with the arrows it may have", room)
			continue
		}
		for _, dep := range p.Deps {
			if standard(packages, dep) {
				continue
			}
			dep = strings.TrimPrefix(dep, module+"/")
			if owner, _, inside := strings.Cut(dep, "/internal/"); inside && owner != room && slices.Contains(allowed, owner) {
				continue // who may use a room links its inner parts
			}
			if !slices.Contains(allowed, dep) {
				t.Errorf("%s imports %s", room, dep)
			}
		}
		for _, dep := range without[room] {
			if slices.Contains(p.Deps, dep) {
				t.Errorf("%s links %s", room, dep)
			}
		}
	}
}

// The database is for the signals of pressure alone: a program that uses none of them
// does not link it.
func TestTheGateLinksNoDatabase(t *testing.T) {
	packages := list(t, module+"/...")
	for _, room := range []string{"shed", "queue", "ratelimit", "admission", "outbound"} {
		if p := packages[module+"/"+room]; len(p.Deps) == 0 || slices.Contains(p.Deps, "database/sql") {
			t.Errorf("%s links database/sql, or is not there", room)
		}
	}
}

// withoutHTTP are rooms that link no net/http: what they decide can be used by those
// who do not speak it.
var withoutHTTP = []string{"shed", "queue", "ratelimit", "outbound/pacer", "outbound/verdict"}

func TestRoomsWithoutHTTPLinkNone(t *testing.T) {
	packages := list(t, module+"/...")
	for _, room := range withoutHTTP {
		p, known := packages[module+"/"+room]
		if !known || slices.Contains(p.Deps, "net/http") {
			t.Errorf("%s links net/http, or is no room", room)
		}
	}
}

// open reports whether a room may import anything.
func open(room string) bool {
	top, _, _ := strings.Cut(room, "/")
	return slices.Contains([]string{"examples", "internal", "metrics", "dashboard"}, top)
}

func standard(all map[string]listed, path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return all[path].Standard || !strings.Contains(first, ".")
}

func list(t *testing.T, pattern string) map[string]listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Deps,Module", pattern).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]listed{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}
