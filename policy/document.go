package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/headgate-go/headgate/policy/internal/tree"
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
	root *tree.Node // nil: nothing but comments
}

// ReadDocument reads and parses the file at path.
func ReadDocument(path string) (*Document, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	defer func() { _ = f.Close() }()
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
	d := &Document{name: name}
	root, err := tree.Parse(name, text)
	if err != nil {
		return nil, d.placed(err)
	}
	d.root = root
	return d, nil
}

// Empty reports whether the document says nothing, as a file does while somebody
// writes it anew.
func (d *Document) Empty() bool { return d.root == nil }

// Decode fills the struct that into points to. Fields that the struct does not
// have, fields given twice and values of the wrong type are errors; fields that
// the document does not have are left as they are.
func (d *Document) Decode(into any) error { return d.placed(d.root.Decode(into)) }

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

// locate adds the place of the field, or of the deepest above it that is there.
func (d *Document) locate(e *FieldError) error {
	node, known := d.root, false
	for _, step := range e.path {
		below := node.Step(step)
		if below == nil {
			break
		}
		node, known = below, true
	}
	if !known {
		return fmt.Errorf("%s: %w", d.name, e)
	}
	return fmt.Errorf("%s:%d:%d: %w", node.File, node.Line, node.Column, e)
}

// placed says where in the file the parser or the decoder stumbled.
func (d *Document) placed(err error) error {
	var e *tree.Error
	if !errors.As(err, &e) {
		return err
	}
	message, name := e.Message, cmp.Or(e.File, d.name)
	if len(e.Path) > 0 {
		message = strings.Join(e.Path, ".") + ": " + message
	}
	switch {
	case e.Column > 0:
		return fmt.Errorf("%s:%d:%d: %s", name, e.Line, e.Column, message)
	case e.Line > 0:
		return fmt.Errorf("%s:%d: %s", name, e.Line, message)
	}
	return fmt.Errorf("%s: %s", name, message)
}
