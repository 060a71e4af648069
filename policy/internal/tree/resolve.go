package tree

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// resolver turns the parser's nodes into Nodes.
type resolver struct {
	file string
	left int // nodes yet allowed
}

func (r *resolver) node(n *yaml.Node, path []string, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, at(n, nil, "nested deeper than %d levels", maxDepth)
	}
	if r.left--; r.left < 0 {
		return nil, at(n, nil, "more than %d values once its aliases are written out", maxNodes)
	}
	if err := tagged(n, path); err != nil {
		return nil, err
	}
	out := &Node{File: r.file, Line: n.Line, Column: n.Column}
	switch n.Kind {
	case yaml.AliasNode:
		return r.node(n.Alias, path, depth+1)
	case yaml.MappingNode:
		out.Kind = Mapping
		return out, r.mapping(n, out, path, depth)
	case yaml.SequenceNode:
		out.Kind = Sequence
		return out, r.sequence(n, out, path, depth)
	}
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	out.Text, out.Quoted = n.Value, n.Style&quoted != 0 || n.Style&yaml.TaggedStyle != 0 && n.Tag == "!!str"
	return out, nil
}

var knownTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq", "!!timestamp", "!!merge", "!"}

// tagged refuses types that no policy has.
func tagged(n *yaml.Node, path []string) error {
	if n.Style&yaml.TaggedStyle != 0 && !slices.Contains(knownTags, n.Tag) {
		return at(n, path, "unknown tag %s", n.Tag)
	}
	return nil
}

func (r *resolver) sequence(n *yaml.Node, out *Node, path []string, depth int) error {
	for i, item := range n.Content {
		value, err := r.node(item, step(path, index(i)), depth+1)
		if err != nil {
			return err
		}
		out.Items = append(out.Items, value)
	}
	return nil
}

// mapping reads the fields of n. What stands there goes before what is merged in,
// wherever the merge key stands; of several merged mappings the first goes before.
func (r *resolver) mapping(n *yaml.Node, out *Node, path []string, depth int) error {
	var merges []*yaml.Node
	seen := make(map[string]bool, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if merge(key) {
			if len(merges) > 0 {
				return at(key, path, "<< twice: say << : [*a, *b]")
			}
			merges = append(merges, value)
			continue
		}
		if err := r.field(key, value, out, seen, path, depth); err != nil {
			return err
		}
	}
	for _, value := range merges {
		if err := r.merge(value, out, seen, path, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func merge(key *yaml.Node) bool { return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" }

func (r *resolver) field(key, value *yaml.Node, out *Node, seen map[string]bool, path []string, depth int) error {
	if key.Kind == yaml.AliasNode {
		key = key.Alias
	}
	if key.Kind != yaml.ScalarNode {
		return at(key, path, "a key must be a text")
	}
	here := step(path, key.Value)
	if seen[key.Value] {
		return at(key, here, "given twice")
	}
	seen[key.Value] = true
	node, err := r.node(value, here, depth+1)
	if err != nil {
		return err
	}
	out.Fields = append(out.Fields, Field{Name: key.Value, Line: key.Line, Column: key.Column, Value: node})
	return nil
}

// merge adds to out the fields of a mapping, or of a list of mappings, that are not seen
// there yet.
func (r *resolver) merge(n *yaml.Node, out *Node, seen map[string]bool, path []string, depth int) error {
	from, err := r.node(n, path, depth)
	if err != nil {
		return err
	}
	list := []*Node{from}
	if from.Kind == Sequence {
		list = from.Items
	}
	for _, one := range list {
		if one.Kind != Mapping {
			return at(n, path, "<< takes a mapping, or a list of mappings")
		}
		for _, f := range one.Fields {
			if !seen[f.Name] {
				seen[f.Name] = true
				out.Fields = append(out.Fields, f)
			}
		}
	}
	return nil
}

// step is path with one step more, in memory of its own.
func step(path []string, to string) []string {
	return append(slices.Clone(path), to)
}

func index(i int) string { return strconv.Itoa(i) }
