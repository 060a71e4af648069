package house

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// What a reader can take in at once.
const (
	mostLines         = 300 // of a source file
	mostTestLines     = 400 // of a test, which is read in parts
	mostFunctionLines = 60
)

func TestFilesAndFunctionsAreShort(t *testing.T) {
	parsed(t, func(path string, fset *token.FileSet, file *ast.File) {
		most := mostLines
		if strings.HasSuffix(path, "_test.go") {
			most = mostTestLines
		}
		if n := fset.File(file.Pos()).LineCount(); n > most {
			t.Errorf("%s has %d lines, more than %d", path, n, most)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := linesOf(fset, fn) - tableLines(fset, fn); n > mostFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d", path, fn.Name.Name, n, mostFunctionLines)
			}
		}
	})
}

func linesOf(fset *token.FileSet, n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

// tableLines returns how many lines of a function are rows of tables: data, of which
// nobody has to follow the flow.
func tableLines(fset *token.FileSet, fn *ast.FuncDecl) (n int) {
	ast.Inspect(fn, func(node ast.Node) bool {
		if c, ok := node.(*ast.CompositeLit); ok && linesOf(fset, c) > 2 {
			n += linesOf(fset, c) - 2
			return false
		}
		return true
	})
	return n
}
