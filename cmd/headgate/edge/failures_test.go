package edge

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/outbound/verdict"
)

// Case ED-09: tried on the product
func TestTheLogSaysWhatIsWrongWithTheUpstreamOnce(t *testing.T) {
	secure := httptest.NewTLSServer(says("hello"))
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(says("hello"))
	t.Cleanup(plain.Close)
	for _, c := range []struct{ name, url, want string }{
		{"refuses connections", "http://127.0.0.1:1", "it refuses connections"},
		{"an unknown name", "http://no.such.host.invalid", "its name is unknown"},
		{"a certificate by a stranger", secure.URL, "its certificate is not accepted"},
		{"no TLS", strings.Replace(plain.URL, "http", "https", 1), "no TLS with it"},
		{"closes at once", "http://" + closing(t), "it broke off"},
		{"no HTTP", "http://" + answering(t, "SSH-2.0-x\r\n\r\n"), "it broke off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, log := startedLogging(t, c.url)
			for range 5 {
				if w := get(e, "/"); w.Code != 502 || strings.TrimSpace(w.Body.String()) != "bad gateway" {
					t.Errorf("%d %q", w.Code, w.Body)
				}
			}
			if got := strings.Count(log.String(), "the upstream failed"); got != 1 {
				t.Errorf("%d lines for five failures:\n%s", got, log)
			}
			if !strings.Contains(log.String(), c.want) || !strings.Contains(log.String(), c.url) {
				t.Errorf("the log does not say %q of %s:\n%s", c.want, c.url, log)
			}
		})
	}
}

// closing is a server that closes each connection, and answering one that answers with
// text.
func closing(t *testing.T) string { return answering(t, "") }

func answering(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for line := "x"; strings.TrimSpace(line) != "" && err == nil; {
					line, err = r.ReadString('\n')
				}
				io.WriteString(c, text)
			}()
		}
	}()
	return l.Addr().String()
}

// Case ED-11: tried on the product
func TestAnAnswerThatIsNoneIsABadGateway(t *testing.T) {
	for _, status := range []string{"099 Odd", "000 Zero", "099", "99 Short", "1000 Long", "abc"} {
		e, _ := startedLogging(t, "http://"+answering(t, "HTTP/1.1 "+status+"\r\nContent-Length: 2\r\n\r\nok"))
		if w := get(e, "/"); w.Code != 502 {
			t.Errorf("status line %q: %d", status, w.Code)
		}
		if got := e.gate.Stats().InFlight(); got != 0 {
			t.Errorf("%d in flight", got)
		}
	}
}

// Case ED-10: tried on the product
func TestABrokenRequestIsTheClientsMistake(t *testing.T) {
	e, log, _ := started(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, "read")
	}), "")
	for _, body := range []string{
		"ZZ\r\nhello\r\n0\r\n\r\n",             // no number
		"5\r\nhelloXX0\r\n\r\n",                // no end of a chunk
		"ffffffffffffffffff\r\nhello\r\n0\r\n", // a length beyond numbers
		"5\r\nhello\r\n0\r\nbroken trailer\r\n\r\n",
	} {
		resp, _ := raw(t, e, "POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked", "", body)
		if resp.StatusCode != 400 || !resp.Close {
			t.Errorf("%q: %d, close %v", body, resp.StatusCode, resp.Close)
		}
	}
	if strings.Contains(log.String(), "upstream failed") {
		t.Errorf("the upstream is blamed:\n%s", log)
	}
	for _, op := range e.outbound.Stats().Operations {
		if op.Ended[verdict.Transient] != 0 || op.Retries != 0 {
			t.Errorf("learned about the upstream: %+v", op.Ended)
		}
	}
}

// An upstream that dies after its head and before its body: the client hears 502. One
// that dies later breaks the client's answer off as well, once what came has been sent.
func TestAnAnswerThatBreaksOff(t *testing.T) {
	for name, c := range map[string]struct {
		length, came int
		want         int
	}{
		"before its first byte":  {100_000, 0, 502},
		"after a few":            {100_000, 4, 200},
		"in the middle":          {100_000, 64 << 10, 200},
		"after a few, in chunks": {0, 4, 200},
	} {
		e, _, _ := started(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.length > 0 {
				w.Header().Set("Content-Length", strconv.Itoa(c.length))
			}
			io.WriteString(w, strings.Repeat("x", c.came))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), "outbound: {retry: {attempts: 1}}")
		for _, major := range []int{1, 2} {
			resp, body, err := brokenOff(t, e, major)
			if resp == nil || resp.StatusCode != c.want {
				t.Errorf("%s, HTTP/%d: %v, %v, want status %d", name, major, resp, err, c.want)
			} else if c.want == 200 && (err == nil || len(body) != c.came) {
				t.Errorf("%s, HTTP/%d: %d bytes of the %d that came, %v", name, major, len(body), c.came, err)
			}
		}
	}
}

// brokenOff asks for /, over HTTP/1 or HTTP/2.
func brokenOff(t *testing.T, e *edge, major int) (resp *http.Response, body []byte, err error) {
	server := httptest.NewUnstartedServer(e.handler)
	server.EnableHTTP2 = major == 2
	server.StartTLS()
	t.Cleanup(server.Close)
	if resp, err = server.Client().Get(server.URL); err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.ProtoMajor != major {
		t.Fatalf("spoke %s", resp.Proto)
	}
	body, err = io.ReadAll(resp.Body)
	return resp, body, err
}

// What a route's 429 holds back is that route, by the rules in force.
func TestAThrottledRouteSlowsNoOther(t *testing.T) {
	asked := map[string]int{}
	e, _, path := started(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked[r.URL.Path]++; strings.HasPrefix(r.URL.Path, "/paid") {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}), "upstream: {signals: {throttle: route}}\ngate: {routes: {/paid/a: {}}}\n")
	reached := func(path string) bool {
		before := asked[path]
		get(e, path)
		return asked[path] > before
	}
	if !reached("/paid/a") || reached("/paid/a") || !reached("/free") {
		t.Errorf("the upstream was asked for %v", asked)
	}
	write(t, path, "upstream: {signals: {throttle: route}}\ngate: {routes: {/paid/a: {}, /paid/b: {}}}\n")
	e.reload("test")
	if !reached("/paid/b") || reached("/paid/b") || !reached("/free") {
		t.Errorf("after a reload, the upstream was asked for %v", asked)
	}
}
