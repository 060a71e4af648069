package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

var soakFor = flag.Duration("soak", 45*time.Second, "how long the soak lasts; 30m before a release")

// The soak is mixed load with injected faults. Afterwards nothing may be left:
// goroutines, heap, in flight and waiting are back at base, the counts add up to
// the requests received, and no client was left without an answer.
//
//	HEADGATE_E2E=1 go test -run TestSoak -soak 30m -timeout 40m
func TestSoak(t *testing.T) {
	need(t, "redis-server")
	s := &soak{t: t, upstream: &program{t: t, path: build(t, "upstream"), addr: freeAddr(t)}, redis: startRedis(t)}
	s.upstream.args = []string{s.upstream.addr}
	s.upstream.start()
	s.edge = startEdge(t, "http://"+s.upstream.addr, s.file(64))

	s.load(3 * time.Second) // warm: connections, pools, buckets
	s.settle()
	base := s.measure()
	ctx, cancel := context.WithTimeout(t.Context(), *soakFor)
	defer cancel()
	var faults sync.WaitGroup
	faults.Go(func() { s.injectFaults(ctx) })
	faults.Go(func() { s.reload(ctx) })
	s.load(*soakFor)
	faults.Wait()
	s.settle()
	s.judge(base)
}

type soak struct {
	t        *testing.T
	edge     *edge
	upstream *program
	redis    *program
	counts   tally
}

func (s *soak) file(slots int) string {
	return fmt.Sprintf(`
redis: redis://%s
watch: 100ms
stall_timeout: 5s
upstream: {idle_conns: 8, header_timeout: 5s}
http2: {cleartext: true}
gate:
  callers: [{header: X-Caller}]
  limits:
    rate: {rate: 150/s, burst: 150}
  capacity: {limit: {throughput: {max: %d}}, max_wait: 300ms}
  deadline: {longest: 3s, header: X-Timeout}
  routes:
    GET /events: {level: high, stream: 50}
    GET /ws: {level: high, stream: 50}
    POST /upload: {level: batch}
`, s.redis.addr, slots)
}

// reload signals and rewrites the file, sometimes with a mistake in it.
func (s *soak) reload(ctx context.Context) {
	every := min(10*time.Second, *soakFor/15)
	for i := 0; pauseFor(ctx, every); i++ {
		switch i % 3 {
		case 0:
			s.edge.signal(syscall.SIGHUP)
		case 1:
			s.edge.write(s.file(64 + i%7))
		case 2:
			s.edge.write(s.file(64) + "  nonsense: {}\n")
		}
	}
	s.edge.write(s.file(64))
}

// injectFaults breaks one thing after the other, with a rest in between.
func (s *soak) injectFaults(ctx context.Context) {
	rest := min(5*time.Second, *soakFor/20)
	for pauseFor(ctx, rest) {
		s.upstream.kill()
		pauseFor(ctx, time.Second)
		s.upstream.start()
		pauseFor(ctx, rest)
		s.upstream.signal(syscall.SIGSTOP)
		pauseFor(ctx, 2*time.Second)
		s.upstream.signal(syscall.SIGCONT)
		pauseFor(ctx, rest)
		s.slowDown("200")
		pauseFor(ctx, 2*time.Second)
		s.slowDown("0")
		pauseFor(ctx, rest)
		s.redis.kill()
		pauseFor(ctx, 2*time.Second)
		s.redis.start()
	}
}

func (s *soak) slowDown(ms string) {
	resp, err := http.Get("http://" + s.upstream.addr + "/delay?ms=" + ms)
	if err != nil {
		s.t.Errorf("the upstream: %v", err)
		return
	}
	resp.Body.Close()
}

// figures are what must be back at base.
type figures struct{ goroutines, heap float64 }

// measure reads them just after a collection, which the reading itself provokes.
func (s *soak) measure() figures {
	s.t.Helper()
	collections := s.edge.metric("go_gc_duration_seconds_count")
	within(s.t, 2*time.Minute, "a garbage collection", func() bool {
		return s.edge.metric("go_gc_duration_seconds_count") > collections
	})
	return figures{s.edge.metric("go_goroutines"), s.edge.metric("go_memstats_heap_alloc_bytes")}
}

// settle waits until everything has ended.
func (s *soak) settle() {
	s.t.Helper()
	s.edge.atRest()
	within(s.t, 10*time.Second, "the counts to add up", func() bool {
		return s.edge.metric("headgate_requests_total") == s.edge.metric("headgate_edge_received_total")
	})
}

func (s *soak) judge(base figures) {
	const idle = 2*8 + 20 // goroutines of idle connections to the upstream, and of those to Redis
	within(s.t, 30*time.Second, fmt.Sprintf("goroutines at base, %v", base.goroutines), func() bool {
		return s.edge.metric("go_goroutines") <= base.goroutines+idle
	})
	now := s.measure()
	if now.heap > base.heap+8<<20 {
		s.t.Errorf("the heap holds %.1f MB, %.1f MB at first", now.heap/(1<<20), base.heap/(1<<20))
	}
	received := s.edge.metric("headgate_edge_received_total")
	s.t.Logf("%v received; goroutines %v → %v; heap %.1f → %.1f MB", received, base.goroutines, now.goroutines, base.heap/(1<<20), now.heap/(1<<20))
	s.counts.report(s.t)
	if reloads := s.edge.metric("headgate_edge_reloads_total", "adopted"); reloads == 0 {
		s.t.Error("no reload was adopted")
	}
	if refused := s.edge.metric("headgate_edge_reloads_total", "refused"); refused == 0 {
		s.t.Error("no mistake was met")
	}
}

// program is a process that comes and goes.
type program struct {
	t    *testing.T
	path string
	args []string
	addr string

	mu  sync.Mutex
	cmd *exec.Cmd
}

// start runs it and waits until it listens.
func (p *program) start() {
	p.t.Helper()
	p.mu.Lock()
	p.cmd = exec.Command(p.path, p.args...)
	err := p.cmd.Start()
	first := p.cmd
	p.mu.Unlock()
	if err != nil {
		p.t.Errorf("%s: %v", p.path, err)
		return
	}
	p.t.Cleanup(func() { first.Process.Kill(); first.Wait() })
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", p.addr); err == nil {
			c.Close()
			return
		}
	}
	p.t.Errorf("%s does not listen on %s", p.path, p.addr)
}

func (p *program) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

func (p *program) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("%s: %v", p.path, err)
	}
}

func startRedis(t *testing.T) *program {
	t.Helper()
	addr := freeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	p := &program{t: t, path: "redis-server", addr: addr, args: []string{
		"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(),
	}}
	p.start()
	return p
}

// pauseFor reports whether it was a whole pause.
func pauseFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func jitter(most time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(most))) }
