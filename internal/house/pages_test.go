package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// page is one document, cut into prose and code.
type page struct {
	path   string // from the root
	prose  string // with the code left out
	blocks []block
}

// block is a fenced piece of code.
type block struct {
	line     int
	language string
	output   string // what produces it, from the comment above: <!-- output: ... -->
	text     string
}

var outputMark = regexp.MustCompile(`^<!-- output: (.+) -->$`)

// readPage cuts a document at its fences.
func readPage(t *testing.T, path string) page {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	p := page{path: path}
	var open *block
	mark := ""
	for i, line := range strings.Split(string(content), "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			open = &block{line: i + 1, language: strings.TrimPrefix(trimmed, "```"), output: mark}
		case open != nil && trimmed == "```":
			p.blocks, open = append(p.blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		default:
			p.prose += line
		}
		if open == nil {
			p.prose += "\n"
		}
		if mark = ""; outputMark.MatchString(trimmed) {
			mark = outputMark.FindStringSubmatch(trimmed)[1]
		}
	}
	if open != nil {
		t.Errorf("%s:%d: a fence that does not end", path, open.line)
	}
	return p
}

// pages returns every document of the project.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	for _, path := range files(t, ".md") {
		all = append(all, readPage(t, path))
	}
	if len(all) < 5 {
		t.Fatalf("%d documents: looked in the wrong place?", len(all))
	}
	return all
}

// files returns the project's files with that ending, from the root.
func files(t *testing.T, ending string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata" || name == "artifacts") {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(name, ending) {
			relative, err := filepath.Rel(root, path)
			found = append(found, relative)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			to := filepath.Join(filepath.Dir(p.path), target)
			if target == "" {
				to = p.path
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: link to %s, which is not there", p.path, m[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(to, ".md") && !slices.Contains(anchors(t, to), anchor) {
				t.Errorf("%s: link to %s, where no heading is called that", p.path, m[1])
			}
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors returns the names under which a page's headings can be linked to.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	var all []string
	for _, m := range heading.FindAllStringSubmatch(readPage(t, path).prose, -1) {
		all = append(all, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}
