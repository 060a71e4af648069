package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// blocks of shell in a document, indented or not.
var shell = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// Every remedy of the runbook works as it stands there: at an edge whose file has the
// routes and plans that it speaks of, and before which requests are on their way.
func TestEveryRemedyOfTheRunbookWorks(t *testing.T) {
	need(t, "curl")
	runbook, err := os.ReadFile("../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(runbook), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		lines := shell.FindAllStringSubmatch(text, -1)
		if len(lines) == 0 {
			t.Errorf("%s has no remedy", name)
		}
		for _, m := range lines {
			t.Run(name, func(t *testing.T) {
				if strings.Count(strings.TrimSpace(m[1]), "\n") > 0 {
					t.Errorf("more than one line: %s", m[1])
				}
				play(t, m[1])
			})
		}
	}
}

func TestTheChangesThatTheEdgesPageShowsWork(t *testing.T) {
	need(t, "curl")
	page, err := os.ReadFile("../docs/edge.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range shell.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(m[1], "curl") {
			play(t, m[1])
		}
	}
}

// play runs a script of a document against an edge of its own, with the address and the
// token that the documents speak of put in.
func play(t *testing.T, script string) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("of-the-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := startEdge(t, newBackend(t).URL, `
admin_token_file: `+token+`
gate:
  callers: [{api_key: {header: X-API-Key, keys: [{key: k, plan: gold}]}}]
  limits: {rate: {rate: 50/s, burst: 100, plans: {gold: {rate: 500/s, burst: 1000}}}}
  capacity: {limit: {fixed: 32}}
  routes: {GET /search: {level: critical}, GET /export: {level: high}}
`)
	if code := status(t, e.base+"/hello"); code != 200 {
		t.Fatal(code)
	}
	script = strings.NewReplacer("127.0.0.1:9180", strings.TrimPrefix(e.admin, "http://"), "/etc/headgate/token", token).Replace(script)
	out, err := exec.Command("sh", "-e", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, script, out)
	}
	switch said := string(out); {
	case strings.Contains(script, "dry_run"):
		if !strings.Contains(said, "(was ") || !strings.Contains(said, "nothing has changed") {
			t.Errorf("a dry run says %s", said)
		}
	case strings.Contains(script, "PATCH"):
		if !strings.Contains(said, "in force until") {
			t.Errorf("%s\nsays %s", script, said)
		}
	case said == "":
		t.Errorf("%s\nsays nothing", script)
	}
	if code := status(t, e.base+"/hello"); code != 200 {
		t.Errorf("afterwards: %d", code)
	}
}
