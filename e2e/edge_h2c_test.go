package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

// h2cServer is a server in Go that upgrades to HTTP/2 when it is asked to.
func h2cServer(t *testing.T) string {
	server := httptest.NewServer(h2c.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "served by "+r.Proto)
	}), new(http2.Server)))
	t.Cleanup(server.Close)
	return server.URL
}

// Case ED-01: golang/go#45785
func TestAServerThatUpgradesToHTTP2IsNotAskedTo(t *testing.T) {
	need(t)
	const file = "http2: {cleartext: true}\ngate:\n  limits: {rate: {rate: 1/h, burst: 12}}\n"
	for name, start := range map[string]func(*testing.T) string{"in Go": h2cServer, "hypercorn": hypercorn} {
		t.Run(name, func(t *testing.T) {
			base := start(t)
			if code := upgrades(t, &edge{addr: base[len("http://"):]}, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"); code != 101 {
				t.Fatalf("asked directly it answers %d: the test proves nothing", code)
			}
			e := startEdge(t, base, file)
			for _, fields := range []string{
				"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n",
				"Connection: upgrade\r\nConnection: http2-settings\r\nUpgrade: H2C\r\n",
				"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n",
				"Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n",
				"Connection: Upgrade\r\nUpgrade: foo\r\nUpgrade: h2c\r\n",
				"Connection: Upgrade\r\nUpgrade:\th2c \r\n",
				"Connection: Upgrade, X\r\nX: 1\r\nUpgrade: h2c/2.0\r\n",
				"Connection: keep-alive, Upgrade, HTTP2-Settings\r\nUpgrade: \"h2c\"\r\n",
				"Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n",
				"Proxy-Connection: Upgrade\r\nUpgrade: h2c\r\n",
			} {
				if code := upgrades(t, e, fields); code == 101 {
					t.Errorf("%q: switched", fields)
				}
			}
			// The tenth has been counted; two more, and the limit holds.
			for range 2 {
				upgrades(t, e, "")
			}
			if code := upgrades(t, e, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"); code != 429 {
				t.Errorf("over the limit: %d", code)
			}
		})
	}
}

// upgrades asks for / with the settings of h2c and further fields, and returns the status.
func upgrades(t *testing.T, e *edge, fields string) int {
	t.Helper()
	c := connect(t, e)
	c.send(t, "GET / HTTP/1.1\r\nHost: h\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"+fields+"\r\n")
	return c.answer(t).StatusCode
}
