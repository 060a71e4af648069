package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// find returns the value at path below node, or the deepest there is on the way;
// nil when there is not even a first step.
func find(node ast.Node, path []string) (at ast.Node) {
	for _, step := range path {
		next := child(node, step)
		if next == nil {
			return at
		}
		node, at = next, next
	}
	return at
}

func child(node ast.Node, step string) ast.Node {
	switch n := resolve(node).(type) {
	case *ast.MappingNode:
		for _, pair := range n.Values {
			if keyOf(pair) == step {
				return pair.Value
			}
		}
	case *ast.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Values) {
			return n.Values[i]
		}
	}
	return nil
}

// resolve sees through what may stand before a value.
func resolve(node ast.Node) ast.Node {
	switch n := node.(type) {
	case *ast.AnchorNode:
		return resolve(n.Value)
	case *ast.TagNode:
		return resolve(n.Value)
	}
	return node
}

func keyOf(pair *ast.MappingValueNode) string {
	if s, ok := pair.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return pair.Key.String()
}

// beginning returns where a value starts. A mapping in block style says the place
// of its first colon.
func beginning(node ast.Node) *token.Position {
	if m, ok := resolve(node).(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	return node.GetToken().Position
}

// pathTo returns the dotted name of the key or value at a position, or "".
func pathTo(node ast.Node, line, column int) string {
	here := func(n ast.Node) bool {
		p := n.GetToken().Position
		return p.Line == line && p.Column == column
	}
	return strings.Join(search(node, here), ".")
}

// search returns the steps to the first key or scalar for which here is true.
func search(node ast.Node, here func(ast.Node) bool) []string {
	switch n := resolve(node).(type) {
	case *ast.MappingNode:
		for _, pair := range n.Values {
			name := keyOf(pair)
			if here(pair.Key) {
				return []string{name}
			}
			if below := search(pair.Value, here); below != nil {
				return append([]string{name}, below...)
			}
		}
	case *ast.SequenceNode:
		for i, value := range n.Values {
			if below := search(value, here); below != nil {
				return append([]string{strconv.Itoa(i)}, below...)
			}
		}
	case nil:
	default:
		if here(n) {
			return []string{}
		}
	}
	return nil
}

// FieldError is a value that makes no sense.
type FieldError struct {
	path []string
	Err  error // what is wrong with it
}

// Field returns the field's name, such as gate.limits.rate.burst.
func (e *FieldError) Field() string { return strings.Join(e.path, ".") }

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %v", e.Field(), e.Err) }

// Unwrap returns what is wrong with the value.
func (e *FieldError) Unwrap() error { return e.Err }

// problems are everything wrong with a file: all of it is told at once.
type problems []*FieldError

func (ps problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems one by one.
func (ps problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// place is where in the file we are, and what was wrong so far.
type place struct {
	path []string
	all  *problems
}

func start(section string) place { return place{path: []string{section}, all: new(problems)} }

// in returns the place of a field below.
func (p place) in(steps ...string) place {
	path := make([]string, 0, len(p.path)+len(steps))
	return place{append(append(path, p.path...), steps...), p.all}
}

// wrong notes an error here; nil is none.
func (p place) wrong(err error) {
	if err != nil {
		*p.all = append(*p.all, &FieldError{p.path, err})
	}
}

func (p place) wrongf(format string, args ...any) { p.wrong(fmt.Errorf(format, args...)) }

// err returns what was wrong anywhere, or nil.
func (p place) err() error {
	if len(*p.all) == 0 {
		return nil
	}
	return *p.all
}
