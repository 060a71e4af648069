package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	soakFor  = flag.Duration("soak", time.Minute, "how long the soak lasts; 30m before a release")
	soakEase = flag.Int("soak-ease", 1, "how many times as long the clients rest, where the machine has other work")
)

// The soak is mixed load with injected faults: the upstream is killed, stopped, slowed
// and resets connections, Redis is killed, the policy is changed each second, and one in
// a hundred clients is hostile. Afterwards nothing may be left: goroutines, heap, in
// flight and waiting are back at base, the counts add up to the requests received, and no
// client was left without an answer.
//
//	HEADGATE_E2E=1 go test -run TestSoak -soak 30m -timeout 40m
func TestSoak(t *testing.T) {
	need(t, "redis-server")
	s := &soak{t: t, upstream: &program{t: t, path: build(t, "upstream"), addr: freeAddr(t)}, redis: startRedis(t)}
	s.upstream.args = []string{s.upstream.addr}
	s.upstream.start()
	s.token = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(s.token, []byte(soakToken), 0o600); err != nil {
		t.Fatal(err)
	}
	s.edge = startEdge(t, "http://"+s.upstream.addr, s.file(64))

	s.load(3 * time.Second) // warm: connections, pools, buckets
	s.settle()
	base := s.measure()
	ctx, cancel := context.WithTimeout(t.Context(), *soakFor)
	defer cancel()
	var faults sync.WaitGroup
	faults.Go(func() { s.injectFaults(ctx) })
	faults.Go(func() { s.reload(ctx) })
	faults.Go(func() { s.watchMemory(ctx) })
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
	token    string // path of the file with the admin port's
	counts   tally
	resident []float64 // MB, by the second
}

func (s *soak) file(slots int) string {
	return fmt.Sprintf(`
redis: redis://%s
admin_token_file: %s
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
`, s.redis.addr, s.token, slots)
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
	s.judgeMemory()
	if refused, told := s.edge.metric("headgate_requests_total", `outcome="refused"`), s.counts.of("429"); refused < float64(told) {
		s.t.Errorf("clients were told %d times that they are over their rate; the edge counts %v", told, refused)
	}
	if reloads := s.edge.metric("headgate_edge_reloads_total", "adopted"); reloads == 0 {
		s.t.Error("no reload was adopted")
	}
	if refused := s.edge.metric("headgate_edge_reloads_total", "refused"); refused == 0 {
		s.t.Error("no mistake was met")
	}
}

// watchMemory notes what the process holds, from the first quarter on: until then it
// grows to its size.
func (s *soak) watchMemory(ctx context.Context) {
	pauseFor(ctx, *soakFor/4)
	for pauseFor(ctx, time.Second) {
		if bytes, err := s.edge.scrape("process_resident_memory_bytes"); err == nil {
			s.resident = append(s.resident, bytes/(1<<20))
		}
	}
}

// judgeMemory compares what was held early and late, peaks set aside.
func (s *soak) judgeMemory() {
	third := len(s.resident) / 3
	if third < 3 {
		return // too short to tell
	}
	early, late := median(s.resident[:third]), median(s.resident[2*third:])
	s.t.Logf("resident: %.1f MB early, %.1f MB late", early, late)
	if late > early*1.2+8 {
		s.t.Errorf("memory grows: %.1f MB early, %.1f MB late", early, late)
	}
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
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
