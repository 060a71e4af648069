package policy

import (
	"fmt"
	"strings"

	"github.com/headgate-go/headgate/policy/internal/tree"
)

// With returns a document that says what d says and, wherever over says something, that:
// section by section and field by field. A list, and the law of a pool, is replaced as a
// whole, since laws exclude each other; null switches off. Errors name the document that
// the field came from. Neither document is changed.
func (d *Document) With(over *Document) *Document {
	return &Document{name: d.name, root: tree.Merge(d.root, over.root, func(path []string) bool {
		last := path[max(0, len(path)-1):]
		return len(last) == 1 && (last[0] == "limit" || last[0] == "in_flight")
	})}
}

// Without returns d without one of its sections.
func (d *Document) Without(section string) *Document {
	return &Document{name: d.name, root: d.root.Without(section)}
}

// Sections are the names of the document's top-level fields.
func (d *Document) Sections() (names []string) {
	if d.root != nil {
		for _, f := range d.root.Fields {
			names = append(names, f.Name)
		}
	}
	return names
}

// Value is one value of a document and where it stands.
type Value struct {
	Field string // such as gate.limits.rate.burst
	Text  string // as YAML writes it
	From  string // document and line
}

// Values returns all values of the document that hold no others, in its order.
func (d *Document) Values() (all []Value) {
	d.root.Each(func(path []string, n *tree.Node) { all = append(all, value(path, n)) })
	return all
}

func value(path []string, n *tree.Node) Value {
	return Value{strings.Join(path, "."), n.String(), fmt.Sprintf("%s:%d", n.File, n.Line)}
}

// Text returns the document as YAML, each value as show writes it.
func (d *Document) Text(show func(Value) string) string {
	var b strings.Builder
	d.root.Write(&b, func(path []string, n *tree.Node) string { return show(value(path, n)) })
	return b.String()
}
