package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const balancerConf = `
	map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
	upstream edges {
%[1]s		keepalive 32;
	}
	server {
		listen %[2]s;
		location / {
			proxy_pass http://edges;
			proxy_http_version 1.1;
			proxy_set_header Host $host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection $connection_upgrade;
			proxy_buffering off;
			proxy_next_upstream error timeout http_503;
			proxy_next_upstream_tries 2;
		}
	}
`

// nginxConf is what all of them have: the directory it may write to, and the rest.
const nginxConf = `
daemon off;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
%[2]s}
`

// runNginx runs nginx with the given part of its section http, in dir, until the test
// ends. It listens at addr.
func runNginx(t *testing.T, dir, addr, http string) (url string) {
	t.Helper()
	need(t, "nginx")
	for path := dir; path != "/" && path != os.TempDir(); path = filepath.Dir(path) {
		os.Chmod(path, 0o777) // its workers are nobody
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, http), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Logf("nginx: %s", log)
		}
	})
	return listening(t, addr, exec.Command("nginx", "-c", conf, "-p", dir))
}

// startNginx runs nginx before the given edges, and returns its address.
func startNginx(t *testing.T, edges ...*edge) string {
	t.Helper()
	var servers strings.Builder
	for _, e := range edges {
		fmt.Fprintf(&servers, "\t\tserver %s max_fails=0;\n", e.addr)
	}
	addr := freeAddr(t)
	runNginx(t, t.TempDir(), addr, fmt.Sprintf(balancerConf, servers.String(), addr))
	return addr
}

// from is a client with an address of its own.
func from(t *testing.T, ip string) *http.Client {
	t.Helper()
	tr := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}).DialContext}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

func visit(t *testing.T, c *http.Client, url string, header ...string) (int, http.Header, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

const behindNginx = `
gate:
  client_ip: {trusted: [127.0.0.1]}
  limits: {rate: {rate: 1/h, burst: 3}}
  routes: {/ws: {stream: 5}, /headers: {exempt: true}}
`

func TestBehindNginxClientsAreToldApart(t *testing.T) {
	need(t, "nginx")
	e := startEdge(t, newBackend(t).URL, behindNginx)
	base := "http://" + startNginx(t, e)
	one, other := from(t, "127.0.0.2"), from(t, "127.0.0.3")
	for i := range 3 {
		if code, _, _ := visit(t, one, base+"/hello"); code != 200 {
			t.Errorf("request %d of a burst of 3: %d", i, code)
		}
	}
	code, header, _ := visit(t, one, base+"/hello", "X-Forwarded-For", "203.0.113.9")
	if code != 429 || header.Get("Retry-After") == "" || header.Get("Headgate-Reason") == "" {
		t.Errorf("with a made-up address: %d %v, want 429 as nginx saw it", code, header)
	}
	if code, _, _ := visit(t, other, base+"/hello"); code != 200 {
		t.Errorf("somebody else: %d", code)
	}
	if _, _, told := visit(t, other, base+"/headers"); !strings.Contains(told, "X-Forwarded-For: 127.0.0.3, 127.0.0.1") {
		t.Errorf("the upstream was told %s", told)
	}
	// Past nginx, nobody's word is taken.
	for range 3 {
		visit(t, from(t, "127.0.0.4"), e.base+"/hello", "X-Forwarded-For", "203.0.113.10")
	}
	if code, _, _ := visit(t, from(t, "127.0.0.4"), e.base+"/hello", "X-Forwarded-For", "203.0.113.11"); code != 429 {
		t.Errorf("past nginx, with a new address each time: %d", code)
	}
}

func TestSocketsAndEventsPassNginx(t *testing.T) {
	need(t, "nginx")
	e := startEdge(t, newBackend(t).URL, behindNginx)
	through := &edge{base: "http://" + startNginx(t, e)}
	socket, resp, err := dial(t, through)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("upgrade: %v", err)
	}
	echoes(t, socket, "through both")
	if late, seen := lateness(t, through.base+"/events?n=2&ms=300"); seen != 2 || late > 250*time.Millisecond {
		t.Errorf("%d events, up to %v late: buffered on the way", seen, late)
	}
	socket.CloseNow()
	e.atRest()
}

// Behind a balancer a deploy costs nobody anything: what meets the edge that
// leaves is answered by it, or sent to the other.
func TestNobodyNoticesADeployBehindNginx(t *testing.T) {
	need(t, "nginx")
	b := newBackend(t)
	const file = "drain: {notice: 500ms, grace: 5s}\n"
	leaving, staying := startEdge(t, b.URL, file), startEdge(t, b.URL, file)
	base := "http://" + startNginx(t, leaving, staying)
	var clients sync.WaitGroup
	var served atomic.Int64
	stop := make(chan struct{})
	for range 8 {
		clients.Go(func() {
			c := &http.Client{Transport: &http.Transport{}}
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := c.Get(base + "/slow?ms=20")
				if err != nil {
					t.Errorf("a client saw %v", err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if served.Add(1); resp.StatusCode != 200 {
					t.Errorf("a client saw %d", resp.StatusCode)
				}
			}
		})
	}
	within(t, 5*time.Second, "load", func() bool { return served.Load() > 50 })
	leaving.signal(syscall.SIGTERM)
	if err := leaving.wait(10 * time.Second); err != nil {
		t.Error(err)
	}
	after := served.Load()
	within(t, 5*time.Second, "load afterwards", func() bool { return served.Load() > after+50 })
	close(stop)
	clients.Wait()
}
