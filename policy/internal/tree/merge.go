package tree

import (
	"slices"
	"strconv"
	"strings"
)

// Merge returns what base says and, wherever over says something, that: mappings are
// merged field by field, everything else is replaced, and so are the mappings for which
// whole is true. Neither is changed.
func Merge(base, over *Node, whole func(path []string) bool) *Node {
	return merged(base, over, nil, whole)
}

func merged(base, over *Node, path []string, whole func([]string) bool) *Node {
	switch {
	case over == nil:
		return base
	case base == nil || base.Kind != Mapping || over.Kind != Mapping || whole(path):
		return over
	}
	out := *over
	out.Fields = slices.Clone(base.Fields)
	for _, f := range over.Fields {
		i := slices.IndexFunc(out.Fields, func(o Field) bool { return o.Name == f.Name })
		if i < 0 {
			out.Fields = append(out.Fields, f)
			continue
		}
		f.Value = merged(out.Fields[i].Value, f.Value, step(path, f.Name), whole)
		out.Fields[i] = f
	}
	return &out
}

// Without returns n without one of its fields.
func (n *Node) Without(name string) *Node {
	if n == nil {
		return nil
	}
	out := *n
	out.Fields = slices.DeleteFunc(slices.Clone(n.Fields), func(f Field) bool { return f.Name == name })
	return &out
}

// Each calls f for every value below n that holds no others, with its path.
func (n *Node) Each(f func(path []string, value *Node)) {
	if n != nil {
		n.each(nil, f)
	}
}

func (n *Node) each(path []string, f func([]string, *Node)) {
	if len(n.Fields) == 0 && len(n.Items) == 0 {
		f(path, n)
	}
	for _, field := range n.Fields {
		field.Value.each(step(path, field.Name), f)
	}
	for i, item := range n.Items {
		item.each(step(path, index(i)), f)
	}
}

// String writes a value without others as YAML does on one line.
func (n *Node) String() string {
	switch n.Kind {
	case Mapping:
		return "{}"
	case Sequence:
		return "[]"
	}
	return quote(n.Text, n.Quoted)
}

// quote puts a text in quotes where it would be read as something else.
func quote(text string, quoted bool) string {
	if quoted || text == "" || strings.ContainsAny(text, "\"'\\#{}[],&*!|>%@`\n\t\r") || strings.Contains(text, ": ") ||
		strings.TrimSpace(text) != text || strings.HasSuffix(text, ":") || strings.ContainsAny(text[:1], "-?:=<") {
		return strconv.Quote(text)
	}
	return text
}

// Write writes n as YAML; show writes each value that holds no others.
func (n *Node) Write(b *strings.Builder, show func(path []string, value *Node) string) {
	if n != nil {
		n.write(b, nil, "", show)
	}
}

func (n *Node) write(b *strings.Builder, path []string, indent string, show func([]string, *Node) string) {
	for _, f := range n.Fields {
		b.WriteString(indent + quote(f.Name, false) + ":")
		f.Value.below(b, step(path, f.Name), indent, show)
	}
	for i, item := range n.Items {
		b.WriteString(indent + "-")
		item.below(b, step(path, index(i)), indent, show)
	}
}

func (n *Node) below(b *strings.Builder, path []string, indent string, show func([]string, *Node) string) {
	if len(n.Fields) == 0 && len(n.Items) == 0 {
		b.WriteString(" " + show(path, n) + "\n")
		return
	}
	b.WriteString("\n")
	n.write(b, path, indent+"  ", show)
}
