package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// edge is the running examples/edge, a process of its own.
type edge struct {
	t          testing.TB
	addr, base string // of clients: host:port, and as a URL
	admin      string // URL
	config     string // path of its file
	process    *exec.Cmd
	exited     chan struct{}
	read       chan struct{} // closed once all that it said has been read

	mu  sync.Mutex
	log bytes.Buffer
}

// built are the programs that tests run, by directory.
var built = struct {
	sync.Mutex
	paths map[string]string
}{paths: map[string]string{}}

// TestMain removes what tests have built.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, path := range built.paths {
		os.Remove(path)
	}
	os.Exit(code)
}

// build compiles the program in dir, once.
func build(t testing.TB, dir string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if bin := built.paths[dir]; bin != "" {
		return bin
	}
	bin := filepath.Join(os.TempDir(), fmt.Sprintf("headgate-e2e-%d-%s", os.Getpid(), filepath.Base(dir)))
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", dir, err, out)
	}
	built.paths[dir] = bin
	return bin
}

// startEdge runs the edge before upstream, with the given text in its file and
// further arguments. It ends with the test.
func startEdge(t testing.TB, upstream, file string, args ...string) *edge {
	t.Helper()
	config := filepath.Join(t.TempDir(), "edge.yaml")
	args = append([]string{"-config", config, "-upstream", upstream, "-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0"}, args...)
	return startProgram(t, "../examples/edge", file, args...)
}

// startProgram runs the program in dir. When its arguments name a file as -config,
// text is written there first.
func startProgram(t testing.TB, dir, text string, args ...string) *edge {
	t.Helper()
	e := &edge{t: t, exited: make(chan struct{}), read: make(chan struct{})}
	if i := slices.Index(args, "-config"); i >= 0 {
		e.config = args[i+1]
		e.write(text)
	}
	e.process = exec.Command(build(t, dir), args...)
	stderr, err := e.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.process.Start(); err != nil {
		t.Fatal(err)
	}
	go e.follow(stderr)
	t.Cleanup(e.stop)
	e.addr = e.said(`msg=serving listen=(\S+)`)
	e.admin = e.said(`msg=admin listen=(\S+)`)
	e.base = "http://" + e.addr
	if strings.Contains(text, "cert:") {
		e.base = "https://" + e.addr
	}
	return e
}

func (e *edge) follow(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		e.mu.Lock()
		e.log.WriteString(lines.Text() + "\n")
		e.mu.Unlock()
	}
	close(e.read)
}

func (e *edge) stop() {
	select {
	case <-e.exited:
	default:
		e.process.Process.Kill()
		<-e.read
		e.process.Wait()
	}
	if e.t.Failed() {
		e.t.Logf("the edge's log:\n%s", e.said(`(?s)(.*)`))
	}
}

// said waits until the edge's log matches, and returns the first group.
func (e *edge) said(pattern string) string {
	e.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		e.mu.Lock()
		m := re.FindStringSubmatch(e.log.String())
		e.mu.Unlock()
		if m != nil {
			return m[1]
		}
	}
	e.t.Fatalf("the edge never said %q", pattern)
	return ""
}

func (e *edge) write(file string) {
	e.t.Helper()
	if err := os.WriteFile(e.config, []byte(file), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *edge) signal(s syscall.Signal) {
	e.t.Helper()
	if err := e.process.Process.Signal(s); err != nil {
		e.t.Fatal(err)
	}
}

// wait waits for the end of the process and returns what it came to.
func (e *edge) wait(longest time.Duration) error {
	e.t.Helper()
	ended := make(chan error, 1)
	go func() {
		<-e.read // the end of the process closes the pipe, read or not
		ended <- e.process.Wait()
	}()
	select {
	case err := <-ended:
		close(e.exited)
		return err
	case <-time.After(longest):
		e.t.Fatalf("still running %v later", longest)
		return nil
	}
}

// metric returns the sum of the samples of a name whose labels contain all of the
// given texts, such as `reason="admitted"`.
func (e *edge) metric(name string, labels ...string) float64 {
	e.t.Helper()
	sum, err := e.scrape(name, labels...)
	if err != nil {
		e.t.Fatal(err)
	}
	return sum
}

func (e *edge) scrape(name string, labels ...string) (sum float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", e.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if base, _, _ := strings.Cut(series, "{"); base != name || !containsAll(series, labels) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// within waits until ok, and fails the test with what otherwise.
func within(t testing.TB, longest time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within %v: %s", longest, what)
}

// atRest waits until nothing is in flight, waiting or open.
func (e *edge) atRest() {
	e.t.Helper()
	within(e.t, 10*time.Second, "nothing in flight, waiting or open", func() bool {
		return e.metric("headgate_in_flight")+e.metric("headgate_queue_depth")+e.metric("headgate_streams") == 0
	})
}
