package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// headgate runs the command and returns what it printed.
func headgate(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestEachCommandDoesWhatItSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.yaml")
	if err := os.WriteFile(path, []byte("upstream: {url: http://h}\ngate: {capacity: {limit: {fixed: 7}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", 0, "usage: headgate"},
		{"help", 0, "headgate COMMAND"},
		{"version", 0, "headgate "},
		{"-version", 0, "headgate "},
		{"check -config " + path, 0, "7 slots"},
		{"check " + path, 0, "7 slots"},
		{"check " + path + "x", 1, "no such file"},
		{"check", 1, "where is the server to protect?"},
		{"check -upstream http://h -admin=", 0, ":8080, admin none"},
		{"check -upstream http://h", 0, ":8080, admin 127.0.0.1:9180"},
		{"size -rps 500 -p50 30ms -p99 120ms", 0, "in flight"},
		{"size", 1, "give -rps"},
		{"schema", 0, `"$schema"`},
		{"completion bash", 0, "edge check size"},
		{"completion tcsh", 1, "there are: bash, zsh, fish"},
		{"nonsense", 2, "no command"},
	} {
		code, stdout, stderr := headgate(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("headgate %s: exit %d, want %d and %q\n%s%s", c.args, code, c.code, c.want, stdout, stderr)
		}
	}
}

func TestTheScriptsOfShellsAreScripts(t *testing.T) {
	_, script, _ := headgate("completion", "bash")
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("bash", "-c", script+`
COMP_WORDS=(headgate ch); COMP_CWORD=1; _headgate; echo "${COMPREPLY[*]}"
COMP_WORDS=(headgate edge -con); COMP_CWORD=2; _headgate; echo "${COMPREPLY[*]}"`)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "check\n-config -connect\n" {
		t.Errorf("bash completes %q, %v", out, err)
	}
}

func TestTheShippedSchemaIsTheSchema(t *testing.T) {
	shipped, err := os.ReadFile("edge.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, now, _ := headgate("schema"); now != string(shipped) {
		t.Error("edge.schema.json is not what the types say: go run ./cmd/headgate schema > cmd/headgate/edge.schema.json")
	}
}

// What people install holds no library that only measures.
func TestTheCommandIsSmall(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if strings.Contains(dep, "headgate/bench") || strings.Contains(dep, "tollbooth") || strings.Contains(dep, "failsafe") {
			t.Errorf("it holds %s", dep)
		}
	}
}
