package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const reportsPage = "docs/field-reports.md"

// report is one line "// Case XX-00: source" above a test.
type report struct {
	id, source string
	right      string // what is right, from the test's comment, or from its name
	test, path string
}

// TestFieldReportsAreListed makes the page of field reports from the comments of the
// tests and compares it with the one in the tree. With -update it writes the page.
func TestFieldReportsAreListed(t *testing.T) {
	want := reportsText(reports(t))
	if got, err := os.ReadFile(filepath.Join(root, reportsPage)); err == nil && string(got) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the tests say: go test ./internal/house -run FieldReports -update", reportsPage)
	}
	if err := os.WriteFile(filepath.Join(root, reportsPage), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReportsAreReadFromComments holds the reader of comments to a comment of each kind.
func TestReportsAreReadFromComments(t *testing.T) {
	const source = `package p

// TestSlotsComeBack gives every slot
// back | once.
//
// Case IF-01: golang/go#1, seen twice
// Case IF-02: tried on the product
func TestSlotsComeBack(t *testing.T) {}

// Case QU-03: chi#9
func TestHTTPWaitersOf2LevelsLeave(t *testing.T) {}

// No report stands behind this one.
func TestOther(t *testing.T) {}
`
	got := reportsIn(t, "p/p_test.go", source)
	want := []report{
		{"IF-01", "golang/go#1, seen twice", "Gives every slot back / once.", "TestSlotsComeBack", "p/p_test.go"},
		{"IF-02", "tried on the product", "Gives every slot back / once.", "TestSlotsComeBack", "p/p_test.go"},
		{"QU-03", "chi#9", "HTTP waiters of 2 levels leave.", "TestHTTPWaitersOf2LevelsLeave", "p/p_test.go"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func reports(t *testing.T) (all []report) {
	t.Helper()
	for _, path := range files(t, "_test.go") {
		if text := read(t, path); strings.Contains(text, "// Case ") {
			all = append(all, reportsIn(t, path, text)...)
		}
	}
	slices.SortStableFunc(all, func(a, b report) int { return strings.Compare(a.id+a.path+a.test, b.id+b.path+b.test) })
	return all
}

var caseLine = regexp.MustCompile(`(?m)^Case ([A-Z]{2}-\d\d): *(.+)$`)

func reportsIn(t *testing.T, path, text string) (all []report) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Doc == nil || !strings.HasPrefix(fn.Name.Name, "Test") {
			continue
		}
		doc := fn.Doc.Text()
		for _, m := range caseLine.FindAllStringSubmatch(doc, -1) {
			all = append(all, report{m[1], cell(m[2]), rightIn(doc, fn.Name.Name), fn.Name.Name, filepath.ToSlash(path)})
		}
	}
	return all
}

// rightIn returns what is right: the first paragraph of the comment, or the name of
// the test in words.
func rightIn(doc, name string) string {
	doc = caseLine.ReplaceAllString(doc, "")
	doc, _, _ = strings.Cut(strings.TrimSpace(doc), "\n\n")
	doc = strings.TrimPrefix(strings.TrimPrefix(doc, name), ":")
	if doc = strings.TrimSpace(doc); doc == "" {
		doc = inWords(strings.TrimPrefix(name, "Test")) + "."
	}
	return cell(strings.ToUpper(doc[:1]) + doc[1:])
}

// inWords cuts a name at its capitals: HTTPWaitersLeave becomes "HTTP waiters leave".
func inWords(name string) string {
	var words []string
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !wordEnds(runes, i) {
			continue
		}
		word := string(runes[start:i])
		if len(words) > 0 && !(len(word) > 1 && word == strings.ToUpper(word)) {
			word = strings.ToLower(word)
		}
		words, start = append(words, word), i
	}
	return strings.Join(words, " ")
}

// wordEnds reports whether a word begins at i.
func wordEnds(name []rune, i int) bool {
	before, here := name[i-1], name[i]
	switch {
	case unicode.IsDigit(here) != unicode.IsDigit(before):
		return true
	case !unicode.IsUpper(here):
		return false
	case !unicode.IsUpper(before):
		return true
	}
	return i+1 < len(name) && unicode.IsLower(name[i+1])
}

// cell makes a text fit a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "/")
}

// topics names the letters of the reports, in the order of the page.
var topics = []struct{ letters, title string }{
	{"ID", "Identify"}, {"RL", "Rate limit"}, {"LI", "Limits"}, {"IF", "In flight"}, {"QU", "Queue"},
	{"PR", "Priority"}, {"GA", "The gate"}, {"SH", "Shutdown"}, {"OB", "Outbound"}, {"OU", "Calls to others"},
	{"RD", "Redis"}, {"ST", "The store"}, {"ED", "The edge"}, {"PO", "Policy files"}, {"ME", "Metrics"},
	{"DB", "Dashboard"}, {"OP", "The operator's page"}, {"SZ", "Sizes and logs"},
}

func reportsText(all []report) string {
	var b strings.Builder
	b.WriteString(`# Field reports

Each row is a report from a service in operation, or a fault that was found by trying the product, and
the test that holds the right answer. This page is written by ` + "`go test ./internal/house -run FieldReports -update`" + `
from the lines ` + "`// Case XX-00: source`" + ` above the tests.
`)
	for _, topic := range topics {
		rows := slices.DeleteFunc(slices.Clone(all), func(r report) bool { return r.id[:2] != topic.letters })
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| report | source | what is right | test |\n|---|---|---|---|\n", topic.title)
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s | %s | %s | [`%s`](../%s) |\n", r.id, r.source, r.right, r.test, r.path)
		}
	}
	return b.String()
}

// TestEveryReportHasATopic: a report of unknown letters would be on no page.
func TestEveryReportHasATopic(t *testing.T) {
	for _, r := range reports(t) {
		if !slices.ContainsFunc(topics, func(topic struct{ letters, title string }) bool { return topic.letters == r.id[:2] }) {
			t.Errorf("%s: Case %s: the letters are in no list", r.path, r.id)
		}
	}
}
