package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// prom is a Prometheus of the test's own.
type prom struct {
	url string
	log *bytes.Buffer
}

// startPrometheus starts one that scrapes the targets every second. rules may be
// empty.
func startPrometheus(t testing.TB, targets map[string]string, rules string, flags ...string) *prom {
	t.Helper()
	need(t, "prometheus", "promtool")
	dir, addr := t.TempDir(), freeAddr(t)
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nscrape_configs:\n"
	for job, target := range targets {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%q]}]}\n", job, target)
	}
	if rules != "" {
		path, err := filepath.Abs(rules)
		if err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("rule_files: [%q]\n", path)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &prom{url: "http://" + addr, log: &bytes.Buffer{}}
	cmd := exec.Command("prometheus", append([]string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + addr,
	}, flags...)...)
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	p.wait(t, "Prometheus is ready", func() bool {
		resp, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p
}

func (p *prom) wait(t testing.TB, what string, yes func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !yes(); time.Sleep(250 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came true that %s", what)
		}
	}
}

// series is one element of an answer.
type series struct {
	Metric map[string]string
	Value  []any
}

// query evaluates an expression now.
func (p *prom) query(expr string) ([]series, error) {
	var answer struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	if err := p.get("/api/v1/query?query="+url.QueryEscape(expr), &answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s", answer.Error)
	}
	var all []series
	if answer.Data.ResultType == "scalar" {
		return []series{{}}, nil
	}
	return all, json.Unmarshal(answer.Data.Result, &all)
}

// labels returns the names of the labels that a metric's series have.
func (p *prom) labels(metric string) (map[string]bool, error) {
	var answer struct{ Data []string }
	err := p.get("/api/v1/labels?match[]="+url.QueryEscape(metric), &answer)
	names := map[string]bool{}
	for _, n := range answer.Data {
		names[n] = true
	}
	return names, err
}

func (p *prom) get(path string, into any) error {
	resp, err := http.Get(p.url + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// promtool runs it and fails with what it said.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	cmd.Dir = "../dashboard/rules"
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func scrape(t *testing.T, target string) string {
	t.Helper()
	resp, err := http.Get(target)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", target, resp.Status, err)
	}
	return string(text)
}

// example builds and runs one of the examples, and waits until it listens at addr.
func example(t *testing.T, name, addr string, args ...string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", bin, "./examples/"+name)
	build.Dir = ".."
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(bin, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	(&prom{}).wait(t, name+" listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}
