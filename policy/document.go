package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// MaxSize bounds the file, in bytes. A policy is written by hand: a larger file is
// not one.
const MaxSize = 1 << 20

// Document is the text of a file, parsed but not yet understood. A program whose
// file holds more than a [Policy] decodes it into a struct of its own:
//
//	type Config struct {
//		Listen        string `yaml:"listen"`
//		policy.Policy `yaml:",inline"`
//	}
//
// and passes the errors that the policy reports later through [Document.At]. It is
// safe for concurrent use.
type Document struct {
	name string
	text []byte
	root ast.Node // nil: nothing but comments
}

// ReadDocument reads and parses the file at path.
func ReadDocument(path string) (*Document, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return ParseDocument(path, text)
}

// ParseDocument parses text. The name stands in errors where a file's path would.
// Text that is empty, or holds comments only, is a document that says nothing.
func ParseDocument(name string, text []byte) (*Document, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%s: larger than %d bytes", name, MaxSize)
	}
	d := &Document{name: name, text: text}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, d.positioned(err)
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if _, comment := doc.Body.(*ast.CommentGroupNode); doc.Body != nil && !comment {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) > 1 {
		return nil, d.errorAt(bodies[1], "a second document: a policy is one")
	}
	if len(bodies) == 1 {
		d.root = bodies[0]
	}
	return d, nil
}

// Empty reports whether the document says nothing, as a file does while somebody
// writes it anew.
func (d *Document) Empty() bool { return d.root == nil }

// Decode fills the struct that into points to. Fields that the struct does not
// have, fields given twice and values of the wrong type are errors; fields that
// the document does not have are left as they are.
func (d *Document) Decode(into any) error {
	if d.root == nil {
		return nil
	}
	err := yaml.NewDecoder(bytes.NewReader(d.text), yaml.Strict()).Decode(into)
	return d.positioned(err)
}

// At adds file and line to the [FieldError]s in err, however they were joined. An
// error without any, and nil, are returned as they are.
func (d *Document) At(err error) error {
	list := fieldErrors(err)
	if len(list) == 0 {
		return err
	}
	located := make([]error, len(list))
	for i, problem := range list {
		located[i] = d.locate(problem)
	}
	return errors.Join(located...)
}

func (d *Document) locate(e *FieldError) error {
	node := find(d.root, e.path)
	if node == nil {
		return fmt.Errorf("%s: %w", d.name, e)
	}
	p := beginning(node)
	return fmt.Errorf("%s:%d:%d: %w", d.name, p.Line, p.Column, e)
}

// positioned says where in the file the parser or the decoder stumbled.
func (d *Document) positioned(err error) error {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		return nil
	}
	p := at.GetToken().Position
	message := at.GetMessage()
	if field := pathTo(d.root, p.Line, p.Column); field != "" {
		message = field + ": " + message
	}
	return fmt.Errorf("%s:%d:%d: %s", d.name, p.Line, p.Column, message)
}

func (d *Document) errorAt(node ast.Node, message string) error {
	p := beginning(node)
	return fmt.Errorf("%s:%d:%d: %s", d.name, p.Line, p.Column, message)
}
