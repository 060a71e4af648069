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

// parsed calls f with every Go file of the project.
func parsed(t *testing.T, f func(path string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, path := range files(t, ".go") {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(root, path), nil, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if !ast.IsGenerated(file) {
			f(path, fset, file)
		}
	}
}

func TestExportedNamesAreCommented(t *testing.T) {
	parsed(t, func(path string, fset *token.FileSet, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || file.Name.Name == "main" || !public(path) {
			return
		}
		for _, d := range file.Decls {
			for _, name := range bare(d) {
				t.Errorf("%s: %s has no comment", fset.Position(name.Pos()), name.Name)
			}
		}
	})
}

func TestPackagesAreCommented(t *testing.T) {
	commented := map[string]bool{}
	parsed(t, func(path string, _ *token.FileSet, file *ast.File) {
		if dir := filepath.Dir(path); !strings.HasSuffix(path, "_test.go") {
			commented[dir] = commented[dir] || file.Doc != nil
		}
	})
	for dir, ok := range commented {
		if !ok {
			t.Errorf("%s: the package has no comment", dir)
		}
	}
}

// public reports whether users of the module can import the file's package.
func public(path string) bool {
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		switch part {
		case "internal", "examples", "bench", "e2e":
			return false
		}
	}
	return true
}

// bare returns the exported names that a declaration leaves without a comment.
func bare(d ast.Decl) []*ast.Ident {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, s := range d.Specs {
			names = append(names, bareSpec(s, d.Doc.Text())...)
		}
		return names
	}
	return nil
}

// bareSpec treats the comment of a group as that of each of it. The methods of an
// interface have comments of their own, or the type's speaks of them.
func bareSpec(s ast.Spec, doc string) (names []*ast.Ident) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil && doc == "" {
			names = append(names, exported(s.Names)...)
		}
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && doc == "" {
			names = append(names, s.Name)
		}
		if i, ok := s.Type.(*ast.InterfaceType); ok && s.Name.IsExported() && len(i.Methods.List) > 1 {
			names = append(names, bareMethods(i.Methods, s.Doc.Text()+doc)...)
		}
	}
	return names
}

func bareMethods(list *ast.FieldList, doc string) (names []*ast.Ident) {
	for _, f := range list.List {
		for _, name := range exported(f.Names) {
			if f.Doc == nil && f.Comment == nil && !strings.Contains(doc, name.Name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func exported(all []*ast.Ident) (names []*ast.Ident) {
	for _, n := range all {
		if n.IsExported() {
			names = append(names, n)
		}
	}
	return names
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestNothingIsLeftToDo: what is not done is not on main.
func TestNothingIsLeftToDo(t *testing.T) {
	for _, ending := range []string{".go", ".md", ".lua", ".js", ".css", ".html", ".yml", ".yaml"} {
		for _, path := range files(t, ending) {
			content, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			for _, mark := range []string{"TO" + "DO", "FIX" + "ME", "XX" + "X:"} {
				if strings.Contains(string(content), mark) {
					t.Errorf("%s says %s", path, mark)
				}
			}
		}
	}
}
