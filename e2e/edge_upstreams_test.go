package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// upstreams are servers in other languages: each has /limited, which tells a user apart by
// X-User and answers 429 to the fourth request of one; /large, 32 MB; /stream, a piece at
// a time; /cut, an answer that breaks off; and takes what is PUT.
var upstreams = map[string]func(*testing.T) string{
	"nginx":       nginxUpstream,
	"http.server": func(t *testing.T) string { return pythonUpstream(t, "testdata/server.py") },
	"hypercorn":   hypercorn,
}

// listening runs a server until the test ends, and returns its URL.
func listening(t *testing.T, addr string, cmd *exec.Cmd) string {
	t.Helper()
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		if t.Failed() {
			t.Logf("the upstream said:\n%.2000s", said.String())
		}
	})
	within(t, 20*time.Second, "the upstream listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "http://" + addr
}

func pythonUpstream(t *testing.T, script string) string {
	need(t, "python3")
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	return listening(t, addr, exec.Command("python3", script, port))
}

func hypercorn(t *testing.T) string {
	need(t, "hypercorn")
	addr := freeAddr(t)
	cmd := exec.Command("hypercorn", "--bind", addr, "asgi:app")
	cmd.Dir = "testdata"
	return listening(t, addr, cmd)
}

const fileServerConf = `
	limit_req_zone $http_x_user zone=users:1m rate=1r/m;
	server {
		listen %[2]s;
		root %[1]s;
		client_max_body_size 64m;
		location = /limited { limit_req zone=users burst=2 nodelay; limit_req_status 429; error_page 429 = @later; try_files /hello =404; }
		location @later { add_header Retry-After 30 always; return 429; }
		location = /stream { limit_rate 1k; limit_rate_after 1; }
		location = /cut { proxy_pass http://%[3]s; }
		location / { dav_methods PUT; }
	}
`

// nginxUpstream serves files, and one answer of a server behind it that breaks off.
func nginxUpstream(t *testing.T) string {
	dir, addr := t.TempDir(), freeAddr(t)
	for name, size := range map[string]int{"hello": 6, "large": 32 << 20, "stream": 3 << 10} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Repeat("x", size)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { behind.Close() })
	go func() {
		for c, err := behind.Accept(); err == nil; c, err = behind.Accept() {
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhalf")
			c.Close()
		}
	}()
	return runNginx(t, dir, addr, fmt.Sprintf(fileServerConf, dir, addr, behind.Addr()))
}

// before runs a test with an edge before each of the upstreams.
func before(t *testing.T, file string, test func(*testing.T, *edge)) {
	need(t)
	for name, start := range upstreams {
		t.Run(name, func(t *testing.T) { test(t, startEdge(t, start(t), file)) })
	}
}

// Case ED-02: istio/istio#39504
func TestWhatAnUpstreamSaysOfOneUserSlowsNoOther(t *testing.T) {
	before(t, "", func(t *testing.T, e *edge) {
		client := &http.Client{}
		var last int
		var header http.Header
		for range 4 {
			last, header, _ = visit(t, client, e.base+"/limited", "X-User", "greedy")
		}
		if last != 429 || header.Get("Retry-After") != "30" || header.Get("Headgate-Reason") != "" {
			t.Fatalf("the upstream's own refusal is %d %v", last, header)
		}
		started := time.Now()
		for i := range 20 {
			if code, _, _ := visit(t, client, e.base+"/limited", "X-User", fmt.Sprint(i)); code != 200 {
				t.Errorf("another user: %d", code)
			}
		}
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("the others took %v", took)
		}
		e.atRest()
	})
}

func TestPiecesOfAnAnswerArriveAsTheyAreMade(t *testing.T) {
	before(t, "", func(t *testing.T, e *edge) {
		resp, err := http.Get(e.base + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		first := time.Now()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		if rest := time.Since(first); rest < 500*time.Millisecond {
			t.Errorf("the whole came within %v of its first byte: held back", rest)
		}
	})
}

func TestLargeBodiesPassWhole(t *testing.T) {
	const size = 32 << 20
	before(t, "", func(t *testing.T, e *edge) {
		resp, err := http.Get(e.base + "/large")
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if resp.Body.Close(); n != size || err != nil {
			t.Errorf("%d of %d bytes came, %v", n, size, err)
		}
		for name, length := range map[string]int64{"announced": size, "in chunks": -1} {
			r, err := http.NewRequest("PUT", e.base+"/put-"+strconv.FormatInt(length, 10), io.LimitReader(zeros{}, size))
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = length
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			said, _ := io.ReadAll(resp.Body)
			if resp.Body.Close(); resp.StatusCode/100 != 2 || len(said) > 0 && resp.StatusCode == 200 && strings.TrimSpace(string(said)) != strconv.Itoa(size) {
				t.Errorf("%s: %d %.100s", name, resp.StatusCode, said)
			}
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A client that asks first sends its body once it is told to, and all of it arrives.
func TestAClientThatAsksBeforeItSends(t *testing.T) {
	before(t, "", func(t *testing.T, e *edge) {
		c := connect(t, e)
		c.send(t, "PUT /asked HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		if resp := c.answer(t); resp.StatusCode != 100 {
			t.Fatalf("first %d, want 100", resp.StatusCode)
		}
		c.send(t, "12345")
		resp := c.answer(t)
		for resp.StatusCode == 100 { // an upstream may say so once more
			resp = c.answer(t)
		}
		if resp.StatusCode/100 != 2 {
			t.Errorf("then %d", resp.StatusCode)
		}
	})
}

// An answer that breaks off breaks off, with a status, and the next request is served.
func TestAConnectionThatTheUpstreamCuts(t *testing.T) {
	before(t, "", func(t *testing.T, e *edge) {
		for range 3 {
			resp, err := http.Get(e.base + "/cut")
			if err != nil {
				t.Fatalf("no answer: %v", err)
			}
			_, err = io.Copy(io.Discard, resp.Body)
			if resp.Body.Close(); resp.StatusCode == 200 && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("made whole: %v", err)
			}
			if code := status(t, e.base+"/hello"); code != 200 {
				t.Errorf("after it: %d", code)
			}
		}
		e.atRest()
	})
}

// A client that leaves in the middle of an answer leaves nothing behind, and a connection
// that the upstream closed while it was idle fails no request.
func TestWhatComesAndGoesLeavesNothing(t *testing.T) {
	before(t, "upstream: {idle_conns: 4}", func(t *testing.T, e *edge) {
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, "GET", e.base+"/large", nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := http.DefaultClient.Do(r); err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			cancel()
		}
		for i := range 100 {
			if code := status(t, e.base+"/hello"); code != 200 {
				t.Fatalf("request %d: %d", i, code)
			}
		}
		e.atRest()
	})
}
