package tree

import (
	"strings"
	"testing"
	"time"
)

// flat writes a tree on one line, to compare.
func flat(n *Node) string {
	if n == nil {
		return "nothing"
	}
	var parts []string
	switch n.Kind {
	case Mapping:
		for _, f := range n.Fields {
			parts = append(parts, f.Name+": "+flat(f.Value))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case Sequence:
		for _, item := range n.Items {
			parts = append(parts, flat(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if n.Null() {
		return "null"
	}
	return n.Text
}

func TestEverySpellingOfADocument(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "nothing"},
		{"comments", "# a\n\n# b\n", "nothing"},
		{"a byte-order mark", "\ufeffa: 1\n", "{a: 1}"},
		{"a mark alone", "\ufeff", "nothing"},
		{"UTF-16", "\xff\xfea\x00:\x00 \x001\x00\n\x00", "{a: 1}"},
		{"a directive", "%YAML 1.2\n---\na: 1\n", "{a: 1}"},
		{"an older directive", "%YAML 1.1\n---\na: 1\n", "{a: 1}"},
		{"a directive behind comments and a mark", "\ufeff# x\n\n%YAML 1.2 # y\r\n---\r\na: 1\r\n", "{a: 1}"},
		{"a document's end", "---\na: 1\n...\n", "{a: 1}"},
		{"an empty second document", "a: 1\n---\n# nothing\n", "{a: 1}"},
		{"anchors", "a: &x [1, &y 2]\nb: *x\nc: *y\n", "{a: [1, 2], b: [1, 2], c: 2}"},
		{"a quoted merge key is a name", "a: {'<<': 1}", "{a: {<<: 1}}"},
		{"null in quotes", "a: 'null'\nb: null\nc:\nd: ''\n", "{a: null, b: null, c: null, d: }"},
		{"blocks of text", "a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{a: x\ny\n, b: x y}"},
		{"a key as an alias", "a: &k x\n*k : 1\n", "{a: x, x: 1}"},
		{"a key with a mark", "? a\n: 1\n", "{a: 1}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := Parse("f", []byte(c.text))
			if err != nil || flat(n) != c.want {
				t.Errorf("got %s, %v, want %s", flat(n), err, c.want)
			}
		})
	}
}

func TestWhatNoPolicyIs(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		line             int
	}{
		{"a list as a key", "? [a]\n: 1\n", "a key must be a text", 1},
		{"a key twice", "a: 1\nb: 2\na: 3\n", "given twice", 3},
		{"a key twice, with an alias", "a: &k b\nb: 1\n*k : 2\n", "given twice", 1},
		{"two merges", "a: &x {}\nb: {<<: *x, <<: *x}\n", "<< twice", 2},
		{"a merge of a text", "a:\n  <<: x\n", "<< takes a mapping", 2},
		{"a list of texts merged", "a:\n  <<: [x]\n", "<< takes a mapping", 2},
		{"a tag", "a: !x 1\n", "unknown tag !x", 1},
		{"bytes", "a: !!binary aGk=\n", "unknown tag !!binary", 1},
		{"an unknown alias", "a: *x\n", "unknown anchor", 0},
		{"an alias within itself", "a: &a [*a]\n", "nested deeper", 1},
		{"a merge of itself", "a: &a\n  <<: *a\n", "nested deeper", 1},
		{"two documents", "a: 1\n---\nb: 1\n", "a second document", 3},
		{"a broken second document", "a: 1\n---\n[\n", "did not find", 0},
		{"a version to come", "%YAML 2.0\n---\na: 1\n", "incompatible", 0},
		{"tabs", "a:\n\tb: 1\n", "cannot start any token", 2},
		{"no UTF-8", "a: \xff\xfe\n", "UTF-8", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := Parse("f", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %s, %v, want %s", flat(n), err, c.want)
			}
			if e := err.(*Error); c.line > 0 && e.Line != c.line {
				t.Errorf("line %d, want %d", e.Line, c.line)
			}
		})
	}
}

// Case ED-11: tried on the product
func TestHostileTextIsRefusedAtABound(t *testing.T) {
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		laughs += "a" + index(i+1) + ": &a" + index(i+1) + " [" + strings.Repeat("*a"+index(i)+", ", 9) + "*a" + index(i) + "]\n"
	}
	keys := new(strings.Builder)
	for i := range 100_000 {
		keys.WriteString("k" + index(i) + ": 1\n")
	}
	for _, c := range []struct{ name, text, want string }{
		{"brackets", strings.Repeat("[", 100_000), "depth"},
		{"braces", strings.Repeat("{a: ", 25_000), "depth"},
		{"dashes", strings.Repeat("- ", 50_000), "depth"},
		{"closed brackets", strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested deeper than 64"},
		{"indented keys", indented(300), "nested deeper than 64"},
		{"aliases of aliases", laughs, "more than 200000 values"},
		{"many keys", keys.String(), ""},
		{"a long text", "a: " + strings.Repeat("x", 1<<19), ""},
		{"question marks", strings.Repeat("? ", 50_000), "depth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			_, err := Parse("f", []byte(c.text))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			// A parser whose time grows with the square of the depth takes minutes.
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

type sample struct {
	Text  string            `yaml:"text"`
	Yes   bool              `yaml:"yes"`
	Ptr   *sample           `yaml:"ptr"`
	List  []sample          `yaml:"list"`
	Names map[string]string `yaml:"names"`
	inner `yaml:",inline"`
}

type inner struct {
	Inner string `yaml:"inner"`
}

func TestDecodeNamesTheField(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[1]", ": must be a mapping"},
		{"text: [1]", "text: must be a text"},
		{"yes: 'true'", "yes: must be true or false"},
		{"yes: yes", "yes: must be true or false"},
		{"list: {a: 1}", "list: must be a list"},
		{"list: [{}, {txt: 1}]", `list.1.txt: unknown field "txt"`},
		{"names: [a]", "names: must be a mapping"},
		{"ptr: {ptr: {inner: {}}}", "ptr.ptr.inner: must be a text"},
	} {
		n, err := Parse("f", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var into sample
		err = n.Decode(&into)
		if err == nil {
			t.Errorf("%s: accepted as %+v", c.text, into)
			continue
		}
		e := err.(*Error)
		if got := strings.Join(e.Path, ".") + ": " + e.Message; !strings.HasPrefix(got, strings.TrimPrefix(c.want, "")) || e.Line == 0 {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

func TestDecodeLeavesWhatTheFileDoesNotSay(t *testing.T) {
	into := sample{Text: "old", Yes: true, Ptr: &sample{Text: "old"}, inner: inner{Inner: "old"}, List: make([]sample, 3)}
	n, err := Parse("f", []byte("inner: new\nptr: {}\nlist: []\nnames:\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Decode(&into); err != nil {
		t.Fatal(err)
	}
	if into.Text != "old" || !into.Yes || into.Inner != "new" || into.Ptr.Text != "" || len(into.List) != 0 {
		t.Errorf("%+v", into)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: &x {b: 1}\nc: {<<: *x}\n", "%YAML 1.2\n---\n[]", "a: [*a]", "? \n", "\ufeff- 1", "a: !!str\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := Parse("f", text)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Errorf("an error of another type: %v", err)
			}
			return
		}
		var into sample
		if err := n.Decode(&into); err != nil {
			if e, ok := err.(*Error); !ok || e.Line < 1 || e.Column < 1 {
				t.Errorf("an error without a place: %v", err)
			}
		}
	})
}
