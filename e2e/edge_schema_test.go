package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// schema is the one that editors are given.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.Open("../cmd/headgate/edge.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	doc, err := jsonschema.UnmarshalJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("edge.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("edge.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// asEdited is a file as an editor hands it to a schema: a value of JSON.
func asEdited(text string) (any, error) {
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	plain, err := json.Marshal(keyed(doc))
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(string(plain)))
}

// keyed has texts for the keys of mappings, which YAML takes for numbers where they look
// like some.
func keyed(v any) any {
	switch v := v.(type) {
	case map[any]any:
		out := map[string]any{}
		for k, one := range v {
			out[fmt.Sprint(k)] = keyed(one)
		}
		return out
	case map[string]any:
		for k, one := range v {
			v[k] = keyed(one)
		}
	case []any:
		for i, one := range v {
			v[i] = keyed(one)
		}
	}
	return v
}

func TestTheSchemaTakesWhatTheEdgeTakes(t *testing.T) {
	need(t)
	s := schema(t)
	defaults, err := exec.Command(build(t, "../cmd/headgate"), "edge", "-print-defaults").Output()
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(defaults), "\n"); !strings.HasPrefix(first, "# yaml-language-server: $schema=") || !strings.HasSuffix(first, "/cmd/headgate/edge.schema.json") {
		t.Errorf("the first line names no schema: %s", first)
	}
	example, err := os.ReadFile("../policy/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("../policy/testdata/examples.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"the defaults": string(defaults), "the policy's example": string(example), "what comments show": string(examples),
		"the manifest's": manifestFile(t), "the soak's": (&soak{redis: &program{addr: "h:1"}, token: "/t"}).file(64),
		"nothing": "", "sections left empty": "gate:\noutbound:\nredis:\nupstream:\n",
	} {
		doc, err := asEdited(text)
		if err == nil {
			err = s.Validate(doc)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheSchemaRefusesWhatTheEdgeRefuses(t *testing.T) {
	need(t)
	text, err := os.ReadFile("../policy/testdata/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var mistakes []struct{ Name, Text, Beyond string }
	if err := yaml.Unmarshal(text, &mistakes); err != nil || len(mistakes) < 50 {
		t.Fatalf("%d mistakes, %v", len(mistakes), err)
	}
	for _, own := range []string{
		"listen: [1]", "tls: {certificate: x}", "idle_timeout: 75", "max_body: -1", "max_body: 1TB", "upgrades: [\"a b\"]",
		"upstream: {retry: always}", "upstream: {signals: {throttle: user}}", "upstream: {idle_conns: -1}", "http2: {max_streams: few}",
		"drain: {grace: -1s}", "watch: yes", "stall_timeout: 1 s",
	} {
		mistakes = append(mistakes, struct{ Name, Text, Beyond string }{own, own, ""})
	}
	s := schema(t)
	for _, m := range mistakes {
		doc, err := asEdited(m.Text)
		if err == nil {
			err = s.Validate(doc)
		}
		if m.Beyond == "" && err == nil {
			t.Errorf("%s: taken", m.Name)
		}
		if m.Beyond != "" && err != nil {
			t.Errorf("%s: said to be beyond a schema, and refused: %v", m.Name, err)
		}
	}
}
