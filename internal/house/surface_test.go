package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostNames bounds the exported names (types, functions, variables and constants, not
// methods) of the root module and redisrate together: what users have to learn, and
// what a release can never take back. It only goes down.
const mostNames = 320

func TestExportedNamesAreFew(t *testing.T) {
	total, by := 0, map[string]int{}
	for _, path := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") || !public(path) {
			continue
		}
		n := exportedIn(t, path)
		total += n
		by[filepath.Dir(path)] += n
	}
	if total < 200 {
		t.Fatalf("only %d exported names: looked in the wrong place?", total)
	}
	if total > mostNames {
		t.Errorf("%d exported names, more than %d: %v", total, mostNames, by)
	}
}

// public reports whether a file belongs to a package that users of the root module or
// of redisrate can import.
func public(path string) bool {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for _, part := range parts {
		switch part {
		case "internal", "examples", "bench", "e2e", "cmd", "gen":
			return false
		}
	}
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return dir == filepath.Join("ratelimit", "redisrate")
		}
	}
	return true
}

func exportedIn(t *testing.T, path string) (n int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if file.Name.Name == "main" {
		return 0
	}
	for _, d := range file.Decls {
		for _, name := range declared(d) {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

// declared returns the names that a declaration brings into the package.
func declared(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name)
			case *ast.ValueSpec:
				names = append(names, s.Names...)
			}
		}
	}
	return names
}
