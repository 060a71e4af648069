package policy

import (
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
