package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func dial(t testing.TB, e *edge) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	return websocket.Dial(ctx, "ws"+strings.TrimPrefix(e.base, "http")+"/ws", nil)
}

// echoes proves that a socket carries messages both ways.
func echoes(t testing.TB, c *websocket.Conn, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(ctx); err != nil || string(got) != text {
		t.Fatalf("sent %q, got %q, %v", text, got, err)
	}
}

func status(t testing.TB, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

// Sockets that are declared as streams leave the slots to requests; undeclared, each takes one.
//
// Case IF-07: field report
func TestSocketsTakeNoSlotsOfRequests(t *testing.T) {
	need(t)
	for name, c := range map[string]struct {
		route      string
		get, after int // statuses of a GET and of a fourth upgrade while three sockets are open
	}{
		"a class of their own": {"    /ws: {stream: 3}\n", 200, 503},
		"exempt":               {"    /ws: {exempt: true}\n", 200, 101},
		"undeclared":           {"    /other: {}\n", 503, 503},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			e := startEdge(t, b.URL, "gate:\n  capacity: {limit: {fixed: 3}, max_wait: none}\n  routes:\n"+c.route)
			var open []*websocket.Conn
			for i := range 3 {
				socket, resp, err := dial(t, e)
				if err != nil || resp.StatusCode != 101 {
					t.Fatalf("socket %d: %v", i, err)
				}
				echoes(t, socket, fmt.Sprint("hello ", i))
				open = append(open, socket)
			}
			if got := status(t, e.base+"/hello"); got != c.get {
				t.Errorf("GET: %d, want %d", got, c.get)
			}
			fourth, resp, _ := dial(t, e)
			if resp == nil || resp.StatusCode != c.after {
				t.Errorf("the fourth upgrade: %v, want %d", resp, c.after)
			}
			if c.after == 503 && resp != nil && resp.Header.Get("Retry-After") == "" {
				t.Error("the refusal has no Retry-After")
			}
			if fourth != nil {
				fourth.CloseNow()
			}
			for _, socket := range open {
				socket.Close(websocket.StatusNormalClosure, "")
			}
			e.atRest()
			if got := status(t, e.base+"/hello"); got != 200 {
				t.Errorf("GET after the sockets closed: %d", got)
			}
		})
	}
}

// Each event must arrive within 100 ms of its flush: nothing on the way buffers. A
// busy machine may be late by itself, a buffer is late every time.
//
// Case IF-12: field report
func TestEventsArriveAtOnce(t *testing.T) {
	need(t)
	b := newBackend(t)
	e := startEdge(t, b.URL, "gate:\n  deadline: {longest: 300ms}\n  routes:\n    GET /events: {stream: 5}\n")
	latest := time.Hour
	for range 5 {
		late, seen := lateness(t, e.base+"/events?n=3&ms=200")
		if seen != 3 {
			t.Fatalf("%d events, want 3", seen)
		}
		if latest = min(latest, late); latest <= 100*time.Millisecond {
			break
		}
	}
	if latest > 100*time.Millisecond {
		t.Errorf("events come up to %v after their flush", latest)
	}
	e.atRest()
}

// lateness reads events and returns how late the latest came, and how many came.
func lateness(t *testing.T, url string) (latest time.Duration, seen int) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		stamp, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		flushed, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		latest = max(latest, time.Since(time.Unix(0, flushed)))
		seen++
	}
	return latest, seen
}

func TestAStreamLeavesItsSlotWithItsFirstFlush(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "gate:\n  routes:\n    GET /events: {stream: 5}\n")
	resp, err := http.Get(e.base + "/events?n=1000&ms=100")
	if err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "one stream, no slot", func() bool {
		return e.metric("headgate_streams") == 1 && e.metric("headgate_in_flight") == 0
	})
	resp.Body.Close()
	e.atRest()
}

// The deadline that cuts an answer spares a declared stream only.
func TestAnUndeclaredStreamEndsAtItsDeadline(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "gate:\n  deadline: {longest: 300ms}\n")
	resp, err := http.Get(e.base + "/events?n=100&ms=50")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil || strings.Count(string(body), "data:") > 50 {
		t.Errorf("%d events and %v: want it cut after 300 ms, visibly", strings.Count(string(body), "data:"), err)
	}
	e.atRest()
}

func TestAClientThatLeavesAStreamEndsItUpstream(t *testing.T) {
	need(t)
	b := newBackend(t)
	e := startEdge(t, b.URL, "gate:\n  routes:\n    GET /events: {stream: 5}\n")
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", e.base+"/events?n=1000&ms=20", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	cancel()
	within(t, 5*time.Second, "the upstream's handler ends", func() bool { return b.running.Load() == 0 })
	e.atRest()
}
