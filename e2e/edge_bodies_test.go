package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// raw is a connection spoken to by hand.
type raw struct {
	net.Conn
	*bufio.Reader
}

func connect(t *testing.T, e *edge) raw {
	t.Helper()
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return raw{c, bufio.NewReader(c)}
}

func (r raw) send(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(r.Conn, text); err != nil {
		t.Fatal(err)
	}
}

// answer reads one response.
func (r raw) answer(t *testing.T) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(r.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// fillUp holds the only slots until the returned function is called.
func fillUp(t *testing.T, e *edge, slots int) {
	t.Helper()
	for range slots {
		go http.Get(e.base + "/slow?ms=60000")
	}
	within(t, 10*time.Second, "all slots taken", func() bool { return e.metric("headgate_in_flight") == float64(slots) })
}

// A refusal must come before the client has sent a body it was told to wait with.
func TestExpectContinueIsAnsweredByTheDecision(t *testing.T) {
	need(t, "curl")
	e := startEdge(t, newBackend(t).URL, "gate:\n  capacity: {limit: {fixed: 1}, max_wait: none}\n")
	const head = "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"

	admitted := connect(t, e)
	admitted.send(t, head)
	if resp := admitted.answer(t); resp.StatusCode != 100 {
		t.Fatalf("admitted: first %d, want 100", resp.StatusCode)
	}
	admitted.send(t, "12345")
	if resp := admitted.answer(t); resp.StatusCode != 200 {
		t.Errorf("admitted: then %d, want 200", resp.StatusCode)
	}
	e.atRest()

	fillUp(t, e, 1)
	refused := connect(t, e)
	refused.send(t, head)
	if resp := refused.answer(t); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("refused: %d, want 503 at once and Retry-After", resp.StatusCode)
	}

	out, err := exec.Command("curl", "-sv", "-m", "10", "-H", "Expect: 100-continue", "--data-binary", "@/bin/sh", e.base+"/upload").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "< HTTP/1.1 503") || strings.Contains(string(out), "100 Continue") {
		t.Errorf("curl: %v\n%s", err, out)
	}
}

// An upstream that says no before the body has come: the client hears it, and the
// slot is free although the client still holds its body back.
func TestAnEarlyAnswerDoesNotWaitForTheBody(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "stall_timeout: 15s\n")
	c := connect(t, e)
	c.send(t, "POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 16<<10))
	start := time.Now()
	if resp := c.answer(t); resp.StatusCode != 403 {
		t.Errorf("status %d, want the upstream's 403", resp.StatusCode)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the answer took %v: it waited for the body", took)
	}
	e.atRest()
}

func TestADribblingWriterIsCut(t *testing.T) {
	need(t)
	for name, file := range map[string]string{
		"that stops":             "stall_timeout: 500ms\n",
		"at the end of its time": "gate:\n  deadline: {longest: 500ms}\n",
	} {
		t.Run(name, func(t *testing.T) {
			e := startEdge(t, newBackend(t).URL, file)
			c := connect(t, e)
			c.send(t, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nsome")
			resp := c.answer(t)
			if resp.StatusCode != 408 || !resp.Close {
				t.Errorf("status %d, close %v: want 408 and Connection: close", resp.StatusCode, resp.Close)
			}
			e.atRest()
		})
	}
}

// A byte now and then holds a slot for as long as its sender likes, unless a body has to
// bring some on average.
func TestABodyThatTricklesIsCut(t *testing.T) {
	need(t)
	for _, c := range []struct {
		file  string
		piece int
		want  int
	}{
		{"stall_timeout: 1s\n", 1, 408},
		{"stall_timeout: 1s\n", 1000, 200}, // 5,000 a second
		{"stall_timeout: 1s\nbody_rate: 1KiB\n", 100, 408},
		{"stall_timeout: 1s\nbody_rate: 0\n", 1, 200},
	} {
		e := startEdge(t, newBackend(t).URL, c.file)
		conn := connect(t, e)
		conn.send(t, fmt.Sprintf("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 20*c.piece))
		go func() {
			for range 20 {
				io.WriteString(conn.Conn, strings.Repeat("x", c.piece))
				time.Sleep(200 * time.Millisecond) // a slow client; the server's clock is what is tested
			}
		}()
		if resp := conn.answer(t); resp.StatusCode != c.want {
			t.Errorf("%q, %d bytes a piece: %d, want %d", c.file, c.piece, resp.StatusCode, c.want)
		}
		e.atRest()
	}
}

// Slow is not stalled: whoever sends something in time may take as long as it
// needs, where the operator allows it.
func TestASlowUploadThatGoesOnIsServed(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "stall_timeout: 2s\nbody_rate: 0\n")
	c := connect(t, e)
	c.send(t, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n")
	for range 6 {
		c.send(t, "x")
		time.Sleep(500 * time.Millisecond) // a slow client; the server's clock is what is tested
	}
	if resp := c.answer(t); resp.StatusCode != 200 {
		t.Errorf("status %d after 3 s of steady dribbling, want 200", resp.StatusCode)
	}
	e.atRest()
}

func TestASlowReaderIsCut(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "stall_timeout: 500ms\n")
	c := connect(t, e)
	c.send(t, "GET /large?pieces=10000 HTTP/1.1\r\nHost: x\r\n\r\n")
	within(t, 5*time.Second, "the answer is under way", func() bool { return e.metric("headgate_in_flight") == 1 })
	e.atRest() // without a byte read
	if n, err := io.Copy(io.Discard, c.Reader); err != nil && n == 0 {
		t.Errorf("%d bytes, %v: want what was sent before the cut", n, err)
	}
}

func TestABodyTooLargeIsRefused(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "max_body: 1KiB\n")
	for name, length := range map[string]int64{"announced": 2048, "in chunks": -1} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", e.base+"/upload", io.NopCloser(bytes.NewReader(make([]byte, 2048))))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = length
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("%s: %d, want 413", name, resp.StatusCode)
		}
	}
	e.atRest()
}

func TestHintsAndTrailersPass(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "")
	var early []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			early = append(early, fmt.Sprint(code, " ", h.Get("Link")))
			return nil
		},
	})
	req, err := http.NewRequestWithContext(ctx, "GET", e.base+"/hints", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(early) != 1 || early[0] != "103 </style.css>; rel=preload" || resp.StatusCode != 200 || resp.Header.Get("X-Final") != "yes" {
		t.Errorf("hints %q, then %d %v", early, resp.StatusCode, resp.Header)
	}

	resp, err = http.Get(e.base + "/trailer")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.Trailer.Get("X-Sum") != "42" {
		t.Errorf("trailer %v", resp.Trailer)
	}
	e.atRest()
}

// An answer that breaks off upstream must break off at the client too, never end
// as if it were whole.
func TestABrokenAnswerIsNotMadeWhole(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "")
	if resp, err := http.Get(e.base + "/abort"); err == nil {
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil {
			t.Errorf("read %q without an error", body)
		}
	}
	e.atRest()
	if got := e.metric("headgate_requests_total", `reason="admitted"`); got != 1 {
		t.Errorf("%v admitted, want 1", got)
	}
}

func TestAClientThatVanishesWhileItWaitsIsCounted(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "gate:\n  capacity: {limit: {fixed: 1}, max_wait: 10s}\n")
	fillUp(t, e, 1)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", e.base+"/hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	within(t, 5*time.Second, "it waits", func() bool { return e.metric("headgate_queue_depth") == 1 })
	cancel()
	<-gone
	within(t, 5*time.Second, "it is gone", func() bool {
		return e.metric("headgate_queue_depth") == 0 && e.metric("headgate_requests_total", `reason="client-gone"`) == 1
	})
}
