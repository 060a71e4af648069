package edge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// h2c is a server, and a client, of HTTP/2 without TLS.
func h2c(t *testing.T, h http.Handler) (string, *http.Client) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return server.URL, &http.Client{Transport: transport}
}

// Case ED-04: tried on the product
func TestAStreamWithASilentClientLives(t *testing.T) {
	const stall, pushes = 200 * time.Millisecond, 8
	upstream, _ := h2c(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := make([]byte, 5)
		if _, err := io.ReadFull(r.Body, first); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		for i := range pushes {
			fmt.Fprintf(w, "push %d\n", i)
			w.(http.Flusher).Flush()
			time.Sleep(stall / 2)
		}
		w.Header().Set("Grpc-Status", "0")
	}))
	e := startedAt(t, upstream, fmt.Sprintf("upstream: {h2c: true}\nstall_timeout: %v\n", stall))
	front, client := h2c(t, e.handler)
	body, side := io.Pipe()
	defer side.Close()
	req, err := http.NewRequestWithContext(t.Context(), "POST", front+"/chat", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/grpc")
	go io.WriteString(side, "hello") // and then nothing
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if got := strings.Count(string(all), "push"); err != nil || got != pushes {
		t.Errorf("%d pushes of %d, %v", got, pushes, err)
	}
	if got := resp.Trailer.Get("Grpc-Status"); got != "0" {
		t.Errorf("trailer %q of %v", got, resp.Trailer)
	}
}

// What the guard is for stays: a body that does not come, before there is an answer.
func TestASilentUploadIsStillAStall(t *testing.T) {
	upstream, _ := h2c(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	e := startedAt(t, upstream, "upstream: {h2c: true}\nstall_timeout: 200ms\n")
	front, client := h2c(t, e.handler)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	body, side := io.Pipe()
	defer side.Close()
	req, err := http.NewRequestWithContext(ctx, "POST", front+"/upload", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 408 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// Case ED-08: tried on the product
func TestCallersOfGRPCAreRefusedInGRPC(t *testing.T) {
	hold := make(chan struct{})
	upstream, _ := h2c(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			<-hold
		}
	}))
	defer close(hold)
	for _, c := range []struct {
		name, file, path, contentType string
		status, pushback              string
		code                          int
	}{
		{"over its rate", "gate: {limits: {rate: {rate: 1/h, burst: 1}}}", "/x", "application/grpc", "8", "3600000", 200},
		{"over its rate, with a codec", "gate: {limits: {rate: {rate: 1/h, burst: 1}}}", "/x", "application/grpc+proto", "8", "3600000", 200},
		{"in a browser", "gate: {limits: {rate: {rate: 1/h, burst: 1}}}", "/x", "application/grpc-web+proto", "8", "3600000", 200},
		{"for good", "gate: {routes: {/x: {cost: 5}}, limits: {rate: {rate: 1/h, burst: 1}}}", "/x", "application/grpc", "8", "-1", 200},
		{"no room", "gate: {capacity: {limit: {fixed: 1}, max_wait: none}}", "/held", "application/grpc", "14", "any", 200},
		{"not in gRPC", "gate: {limits: {rate: {rate: 1/h, burst: 1}}}", "/x", "application/json", "", "", 429},
		{"no upstream", "", "/x", "application/grpc", "14", "", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := upstream
			if c.file == "" {
				at = "http://127.0.0.1:1"
			}
			e := startedAt(t, at, c.file+"\nupstream: {h2c: true}\n")
			front, client := h2c(t, e.handler)
			call := func() *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), "POST", front+c.path, strings.NewReader("\x00\x00\x00\x00\x00"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", c.contentType)
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				return resp
			}
			if c.path == "/held" {
				go func() {
					req, _ := http.NewRequestWithContext(t.Context(), "POST", front+"/held", nil)
					if resp, err := client.Do(req); err == nil {
						resp.Body.Close()
					}
				}()
				for e.gate.Stats().InFlight() == 0 {
					time.Sleep(time.Millisecond)
				}
			} else {
				call()
			}
			resp := call()
			if resp.StatusCode != c.code || resp.Header.Get("Grpc-Status") != c.status {
				t.Errorf("status %d, grpc-status %q: %v", resp.StatusCode, resp.Header.Get("Grpc-Status"), resp.Header)
			}
			pushback := resp.Header.Get("Grpc-Retry-Pushback-Ms")
			if c.pushback == "any" && pushback == "" || c.pushback != "any" && pushback != c.pushback {
				t.Errorf("grpc-retry-pushback-ms %q, want %q", pushback, c.pushback)
			}
			if c.status != "" && (resp.Header.Get("Content-Type") != c.contentType || resp.ContentLength > 0) {
				t.Errorf("no answer of trailers only: %v, %d bytes", resp.Header, resp.ContentLength)
			}
		})
	}
}
