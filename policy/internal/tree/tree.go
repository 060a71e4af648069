// Package tree reads YAML into a tree in which every alias, merge key and tag is
// resolved, and every scalar is the text that stands in the file. It decides no types:
// what a scalar means is for the field that it is decoded into, so that 0012345, 010,
// 1_000, yes and 2024-01-01 stay what they are where a text is asked for.
package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Kind says what a node is.
type Kind uint8

// The kinds of nodes.
const (
	Scalar Kind = iota
	Mapping
	Sequence
)

// Node is one value. It is read-only after Parse.
type Node struct {
	Kind         Kind
	File         string
	Line, Column int // where the value begins, from 1

	Text   string // of a scalar, as written; quotes and escapes are resolved
	Quoted bool   // or a block of text: never null, true or a number

	Fields []Field // of a mapping, in the order of the file
	Items  []*Node // of a sequence
}

// Field is one key of a mapping with its value.
type Field struct {
	Name         string
	Line, Column int // of the key, in the file of the mapping
	Value        *Node
}

// Null reports whether the node is empty, or says null.
func (n *Node) Null() bool {
	return n.Kind == Scalar && !n.Quoted && (n.Text == "" || n.Text == "~" || n.Text == "null")
}

// Step returns the value of a mapping's field, or a sequence's item by its number; nil
// for what is not there.
func (n *Node) Step(name string) *Node {
	if n == nil {
		return nil
	}
	for _, f := range n.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Items) {
		return n.Items[i]
	}
	return nil
}

// Error is a mistake and where it is.
type Error struct {
	File         string // empty: unknown
	Line, Column int    // 0: unknown; the parser knows no columns
	Path         []string
	Message      string
}

// Error says what is wrong, without the place.
func (e *Error) Error() string { return e.Message }

const (
	maxDepth = 64     // of what is written by hand: far more than any policy has
	maxNodes = 200000 // with every alias written out
)

// Parse reads one document, of the file of that name. It returns nil for text that says nothing. The errors are
// *Error.
func Parse(file string, text []byte) (*Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(plain(text)))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(err)
	}
	switch err := decoder.Decode(&second); {
	case err == nil && !silent(&second):
		return nil, at(second.Content[0], nil, "a second document: a policy is one")
	case err != nil && !errors.Is(err, io.EOF):
		return nil, syntax(err)
	}
	if silent(&first) {
		return nil, nil
	}
	r := resolver{file: file, left: maxNodes}
	return r.node(first.Content[0], nil, 0)
}

// silent reports a document of nothing but comments.
func silent(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" && doc.Content[0].Value == ""
}

var directive = regexp.MustCompile(`(?m)\A((?:\s*#.*\n|\s*\n)*)%YAML[ \t]+1\.[0-9]+[ \t]*(?:#.*)?\r?$`)

// plain is text without what the parser takes no notice of or refuses for no reason: a
// byte-order mark, and the directive of a version that reads alike. Lines stay.
func plain(text []byte) []byte {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	return directive.ReplaceAll(text, []byte("${1}#"))
}

var placed = regexp.MustCompile(`^yaml: (?:line (\d+): )?((?s).*)$`)

// syntax says where the parser stumbled.
func syntax(err error) *Error {
	m := placed.FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Message: err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	return &Error{Line: line, Message: m[2]}
}

func at(n *yaml.Node, path []string, format string, args ...any) *Error {
	return &Error{Line: n.Line, Column: n.Column, Path: path, Message: fmt.Sprintf(format, args...)}
}
