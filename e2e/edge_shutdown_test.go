package e2e

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// answer is how one request ended.
type answer struct {
	status     int
	close      bool
	retryAfter string
	err        error
}

func request(url string, header ...string) answer {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return answer{err: err}
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return answer{resp.StatusCode, resp.Close, resp.Header.Get("Retry-After"), err}
}

func later(url string) <-chan answer {
	got := make(chan answer, 1)
	go func() { got <- request(url) }()
	return got
}

// Work that runs is finished, work that waits is answered, new work is told to come back on another connection.
//
// Case SH-01: field report
func TestDrainAnswersAllAndEnds(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "drain: {notice: 1s, grace: 5s}\ngate:\n  capacity: {limit: {fixed: 1}, max_wait: 20s}\n")
	running := later(e.base + "/slow?ms=2500")
	within(t, 5*time.Second, "one runs", func() bool { return e.metric("headgate_in_flight") == 1 })
	first, second := later(e.base+"/hello"), later(e.base+"/hello")
	within(t, 5*time.Second, "two wait", func() bool { return e.metric("headgate_queue_depth") == 2 })

	start := time.Now()
	e.signal(syscall.SIGTERM)
	within(t, 900*time.Millisecond, "not ready during the notice", func() bool { return request(e.admin+"/readyz").status == 503 })
	if got := request(e.admin + "/livez"); got.status != 200 {
		t.Errorf("alive during the notice: %+v", got)
	}
	within(t, 5*time.Second, "draining", func() bool { return e.metric("headgate_draining") == 1 })
	late := request(e.base + "/hello")
	if late.status != 503 || late.retryAfter == "" || !late.close {
		t.Errorf("a newcomer: %+v, want 503, Retry-After and Connection: close", late)
	}
	if got := <-running; got.status != 200 || got.err != nil {
		t.Errorf("the running one: %+v, want 200", got)
	}
	for _, waiting := range []<-chan answer{first, second} {
		if got := <-waiting; got.err != nil || got.status != 200 && (got.status != 503 || got.retryAfter == "") {
			t.Errorf("a waiting one: %+v, want 200, or 503 and Retry-After", got)
		}
	}
	if err := e.wait(5 * time.Second); err != nil {
		t.Errorf("the edge ended in %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v: more than a second of notice and the work", took)
	}
	if said := e.said(`msg=left (.*)`); said != "running=0 streams=0 connections_cut=false" {
		t.Errorf("the last line says %s", said)
	}
}

// What is still there when the grace ends is said, then cut.
func TestWhatIsLeftAfterTheGraceIsSaid(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "drain: {notice: 0s, grace: 500ms}\ngate:\n  routes:\n    /ws: {stream: 5}\n")
	socket, _, err := dial(t, e)
	if err != nil {
		t.Fatal(err)
	}
	echoes(t, socket, "hello")
	stuck := later(e.base + "/slow?ms=60000")
	within(t, 5*time.Second, "one runs", func() bool { return e.metric("headgate_in_flight") == 1 })
	e.signal(syscall.SIGTERM)
	if err := e.wait(5 * time.Second); err != nil {
		t.Errorf("the edge ended in %v", err)
	}
	if said := e.said(`msg=left (.*)`); said != "running=1 streams=1 connections_cut=true" {
		t.Errorf("the last line says %s", said)
	}
	if got := <-stuck; got.err == nil && got.status < 500 {
		t.Errorf("the one that was cut: %+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, _, err := socket.Read(ctx); err == nil || websocket.CloseStatus(err) == websocket.StatusNormalClosure {
		t.Errorf("the socket that was cut: %v", err)
	}
}

// A deploy under load: nobody gets a broken connection.
func TestNobodyIsCutInADeploy(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "drain: {notice: 1s, grace: 5s}\n")
	stop := make(chan struct{})
	broken := make(chan answer, 100)
	for range 8 {
		go func() {
			client := &http.Client{Transport: &http.Transport{}}
			for {
				select {
				case <-stop:
					broken <- answer{}
					return
				default:
				}
				resp, err := client.Get(e.base + "/slow?ms=20")
				if err != nil {
					broken <- answer{err: err}
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}()
	}
	time.Sleep(300 * time.Millisecond) // of load
	e.signal(syscall.SIGTERM)
	time.Sleep(800 * time.Millisecond) // within the notice, after which balancers are elsewhere
	close(stop)
	for range 8 {
		if got := <-broken; got.err != nil {
			t.Errorf("a client saw %v", got.err)
		}
	}
	if err := e.wait(5 * time.Second); err != nil {
		t.Error(err)
	}
}

// Many reloads must cost nothing that stays, and a second SIGTERM ends at once.
//
// Case SH-02: field report
func TestManyReloadsLeaveNothingBehind(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "watch: 50ms\ndrain: {notice: 30s}\ngate:\n  limits: {rate: {rate: 1000/s, burst: 1000}}\n")
	status(t, e.base+"/hello")
	before := e.metric("go_goroutines")
	for range 200 {
		e.signal(syscall.SIGHUP)
		time.Sleep(2 * time.Millisecond) // signals of one kind are not queued
	}
	within(t, 5*time.Second, "many reloads", func() bool { return e.metric("headgate_edge_reloads_total", "adopted") >= 50 })
	within(t, 5*time.Second, "goroutines at base", func() bool { return e.metric("go_goroutines") <= before+3 })
	if got := status(t, e.base+"/hello"); got != 200 {
		t.Errorf("after the reloads: %d", got)
	}
	e.signal(syscall.SIGTERM)
	e.said("(leaving)")
	e.signal(syscall.SIGTERM)
	if err := e.wait(2 * time.Second); err == nil {
		t.Error("a second SIGTERM during the notice was not taken as an order")
	}
}

// A negative time in the settings is an error at set-up, never a panic later.
//
// Case SH-05: field report
func TestNegativeTimesAreRefused(t *testing.T) {
	need(t)
	bin := build(t, "../examples/edge")
	for text, want := range map[string]string{
		"watch: 0s":                        "", // documented: on SIGHUP only
		"watch: -1s":                       "watch: must not be negative",
		"stall_timeout: 0s":                "stall_timeout: must be positive",
		"idle_timeout: -5s":                "idle_timeout: must be positive",
		"drain: {grace: 0s}":               "drain.grace: must be positive",
		"gate: {deadline: {longest: -1s}}": "gate.deadline.longest: must not be negative",
	} {
		path := t.TempDir() + "/edge.yaml"
		(&edge{t: t, config: path}).write(text)
		out, err := exec.Command(bin, "-check", "-upstream", "http://127.0.0.1:1", "-config", path).CombinedOutput()
		if (err != nil) != (want != "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s: want %q", text, err, out, want)
		}
		if strings.Contains(string(out), "panic") {
			t.Errorf("%s: %s", text, out)
		}
	}
}

func TestTheFileIsFollowed(t *testing.T) {
	need(t)
	const file = "watch: 50ms\ngate:\n  limits: {rate: {rate: 1/h, burst: 2}}\n"
	e := startEdge(t, newBackend(t).URL, file)
	if got := status(t, e.base+"/hello"); got != 200 {
		t.Fatal(got)
	}
	e.write(file + "  capasity: {}\n")
	e.said(`(edge.yaml:4:3: gate.capasity)`)
	e.write(file + "  capacity: {limit: {fixed: 9}}\n")
	within(t, 5*time.Second, "the new limit", func() bool { return e.metric("headgate_limit") == 9 })
	if first, second := status(t, e.base+"/hello"), status(t, e.base+"/hello"); first != 200 || second != 429 {
		t.Errorf("%d, %d: the balance was not kept", first, second)
	}
}

func TestTheAdminPagesAnswerOutsideOfTheGate(t *testing.T) {
	need(t)
	e := startEdge(t, newBackend(t).URL, "gate:\n  capacity: {limit: {fixed: 1}, max_wait: none}\n")
	fillUp(t, e, 1)
	for path, want := range map[string]string{
		"/": "<title>", "/headgate/": "<title>", "/metrics": "headgate_in_flight", "/livez": "alive", "/readyz": "ready",
	} {
		resp, err := http.Get(e.admin + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, %v", path, resp.StatusCode, err)
		}
	}
}
