package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// switching is an upstream that switches to whatever is asked for, and to the protocol
// in X-Answer where that is given. It echoes what comes through.
func switching(seen *http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*seen = r.Header.Clone()
		lines := r.Header["X-Answer"]
		if lines == nil {
			lines = r.Header["Upgrade"]
		}
		if lines == nil {
			io.WriteString(w, "plain")
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n")
		for _, line := range lines {
			fmt.Fprintf(conn, "Connection: Upgrade\r\nUpgrade: %s\r\n", line)
		}
		fmt.Fprint(conn, "\r\n")
		io.Copy(conn, conn)
	}
}

// raw sends the lines of a request's head to the edge and returns the answer.
func raw(t *testing.T, e *edge, lines ...string) (*http.Response, net.Conn) {
	t.Helper()
	server := httptest.NewServer(e.handler)
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprint(conn, strings.Join(lines, "\r\n")+"\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp, conn
}

// Case ED-01: golang/go#45785
func TestOnlyListedProtocolsAreSwitchedTo(t *testing.T) {
	var seen http.Header
	e, _, _ := started(t, switching(&seen), "outbound: {retry: {attempts: 1}}")
	const settings = "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"
	for _, c := range []struct {
		name  string
		lines []string
		want  string // what the upstream is asked for; "": nothing
	}{
		{"as it is written", []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", settings}, ""},
		{"several Connection lines", []string{"Connection: keep-alive", "Connection: HTTP2-Settings", "connection: upgrade", "Upgrade: h2c", settings}, ""},
		{"settings that no line names", []string{"Connection: Upgrade", "Upgrade: h2c", settings}, ""},
		{"settings alone", []string{settings}, ""},
		{"other letter case", []string{"CONNECTION: UPGRADE", "UPGRADE: H2C", "http2-settings: AAMAAABk"}, ""},
		{"a version", []string{"Connection: Upgrade", "Upgrade: h2c/1"}, ""},
		{"TLS inside", []string{"Connection: Upgrade", "Upgrade: TLS/1.2"}, ""},
		{"no known protocol", []string{"Connection: Upgrade", "Upgrade: SPDY/3.1"}, ""},
		{"bytes that are no text", []string{"Connection: Upgrade", "Upgrade: h2c\xff"}, ""},
		{"listed, without Connection", []string{"Upgrade: websocket"}, ""},
		{"listed", []string{"Connection: Upgrade", "Upgrade: WebSocket"}, "websocket"},
		{"listed with others", []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c, websocket", settings}, "websocket"},
		{"listed on a second line", []string{"Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket"}, "websocket"},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, conn := raw(t, e, append([]string{"GET / HTTP/1.1", "Host: h"}, c.lines...)...)
			if got := seen.Get("Upgrade"); got != c.want || len(seen["Upgrade"]) > 1 {
				t.Errorf("the upstream was asked for %q, want %q", seen["Upgrade"], c.want)
			}
			if seen["Http2-Settings"] != nil {
				t.Errorf("settings came through: %q", seen["Http2-Settings"])
			}
			if c.want == "" {
				if resp.StatusCode != 200 {
					t.Errorf("status %d, want the plain answer", resp.StatusCode)
				}
				return
			}
			if resp.StatusCode != 101 {
				t.Fatalf("status %d, want 101", resp.StatusCode)
			}
			fmt.Fprintln(conn, "ping")
			if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "ping\n" {
				t.Errorf("through the tunnel came %q, %v", line, err)
			}
		})
	}
}

// An upstream that switches where nothing was asked for opens no tunnel.
func TestAnUpgradeThatWasNotAskedForIsABadGateway(t *testing.T) {
	var seen http.Header
	e, _, _ := started(t, switching(&seen), "outbound: {retry: {attempts: 1}}")
	for _, c := range [][]string{
		{"X-Answer: h2c"},
		{"X-Answer: "},
		{"Connection: Upgrade", "Upgrade: websocket", "X-Answer: h2c"},
		{"Connection: Upgrade", "Upgrade: websocket", "X-Answer: websocket, h2c"},
		{"Connection: Upgrade", "Upgrade: websocket", "X-Answer: websocket", "X-Answer: h2c"},
		{"Connection: Upgrade", "Upgrade: h2c", "X-Answer: h2c"},
	} {
		if resp, _ := raw(t, e, append([]string{"GET / HTTP/1.1", "Host: h"}, c...)...); resp.StatusCode != 502 {
			t.Errorf("%q: status %d, want 502", c, resp.StatusCode)
		}
	}
	if got := e.gate.Stats().InFlight(); got != 0 {
		t.Errorf("%d in flight", got)
	}
}

func TestMethodsThatAskForATunnelAreRefused(t *testing.T) {
	var seen http.Header
	e, _, _ := started(t, switching(&seen), "")
	for _, line := range []string{"CONNECT h:443 HTTP/1.1", "CONNECT / HTTP/1.1", "PRI * HTTP/2.0"} {
		head := []string{line}
		if !strings.HasPrefix(line, "PRI") {
			head = append(head, "Host: h:443")
		}
		if resp, _ := raw(t, e, head...); resp.StatusCode != 405 || !resp.Close {
			t.Errorf("%s: status %d, close %v, want 405 and the end", line, resp.StatusCode, resp.Close)
		}
	}
	if seen != nil {
		t.Error("the upstream was asked")
	}
}

// A tunnel holds the slot it came with: a fixed pool of two takes no third.
func TestATunnelCountsForAsLongAsItLives(t *testing.T) {
	var seen http.Header
	e, _, _ := started(t, switching(&seen), "gate: {capacity: {limit: {fixed: 2}, max_wait: none}}")
	open := []string{"GET /ws HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: websocket"}
	for range 2 {
		if resp, _ := raw(t, e, open...); resp.StatusCode != 101 {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	if resp, _ := raw(t, e, open...); resp.StatusCode != 503 {
		t.Errorf("a third tunnel through two slots: %d", resp.StatusCode)
	}
}

func TestWhichProtocolsMayBeListed(t *testing.T) {
	var seen http.Header
	e, _, _ := started(t, switching(&seen), "upgrades: [Chat/2]")
	raw(t, e, "GET / HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: websocket, chat/2")
	if got := seen.Get("Upgrade"); got != "chat/2" {
		t.Errorf("the upstream was asked for %q", got)
	}
	_, err := source{upstream: "http://h", path: file(t, "upgrades: [websocket, \"a b\"]")}.load(nil)
	if err == nil || !strings.Contains(err.Error(), `:1:23: upgrades.1: "a b" is no name`) {
		t.Errorf("got %v", err)
	}
}

// HTTP/2 has no upgrades, and its transport takes one for a mistake.
func TestAnUpstreamOfHTTP2IsAskedForNoUpgrade(t *testing.T) {
	upstream := httptest.NewUnstartedServer(says("plain"))
	upstream.Config.Protocols = new(http.Protocols)
	upstream.Config.Protocols.SetUnencryptedHTTP2(true)
	upstream.Start()
	t.Cleanup(upstream.Close)
	e := startedAt(t, upstream.URL, "upstream: {h2c: true}")
	resp, _ := raw(t, e, "GET / HTTP/1.1", "Host: h", "Connection: Upgrade", "Upgrade: websocket")
	if resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
}
