// Package redistest starts Redis servers of a test's own on loopback.
package redistest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of the test's own, on a private port of loopback.
type Server struct {
	t    testing.TB
	Addr string
	args []string
	cmd  *exec.Cmd
}

// Start starts a server that dies with the test. On a machine without
// redis-server the test is skipped, unless CI or HEADGATE_REQUIRE_REDIS says that
// there must be one.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" || os.Getenv("HEADGATE_REQUIRE_REDIS") != "" {
			t.Fatal("redis-server is not on the PATH: apt-get install redis-server")
		}
		t.Skip("no redis-server on the PATH")
	}
	s := &Server{t: t, Addr: FreeAddr(t), args: args}
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

var ports sync.Map // handed out in this run

// FreeAddr returns an address without a listener. It stays below the ports that
// the system gives to connections, and so does the bus of a cluster node, which
// is 10000 above.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := 10240 + rand.IntN(12000)
		if _, taken := ports.LoadOrStore(port, true); !taken && free(port) && free(port+10000) {
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatal("no free port")
	return ""
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Start starts the server again, empty.
func (s *Server) Start() {
	s.t.Helper()
	dir := s.t.TempDir()
	_, port, _ := net.SplitHostPort(s.Addr)
	s.cmd = exec.Command("redis-server", append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no",
		"--logfile", filepath.Join(dir, "log"),
	}, s.args...)...)
	s.cmd.SysProcAttr = WithParent()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.Wait()
}

// Wait returns once the server answers.
func (s *Server) Wait() {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	Eventually(s.t, 10*time.Second, "server answers", func() bool {
		return c.Ping(context.Background()).Err() == nil
	})
}

// Kill ends the server at once.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Signal sends the server a signal.
func (s *Server) Signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Client returns a client that is closed with the test.
func (s *Server) Client(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// Do runs a command that must work.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer c.Close()
	v, err := c.Do(context.Background(), args...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// Cluster starts three primaries that share the slots.
func Cluster(t testing.TB) []*Server {
	t.Helper()
	var nodes []*Server
	var addrs []string
	for i := range 3 {
		n := Start(t, "--cluster-enabled", "yes", "--cluster-config-file", fmt.Sprintf("nodes-%d.conf", i),
			"--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no")
		nodes, addrs = append(nodes, n), append(addrs, n.Addr)
	}
	out, err := exec.Command("redis-cli", append(append([]string{"--cluster", "create"}, addrs...),
		"--cluster-yes")...).CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli --cluster create: %v\n%s", err, out)
	}
	for _, n := range nodes {
		Eventually(t, 20*time.Second, "cluster is up", func() bool {
			return strings.Contains(fmt.Sprint(n.Do("cluster", "info")), "cluster_state:ok")
		})
	}
	return nodes
}

// Eventually fails the test unless ok holds within that time.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within %v: %s", within, what)
}

// ContainsFold reports whether part is in s, in any letter case.
func ContainsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
