package shared

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is the store all subjects of a run share: one started for the run, or
// one that was there.
type server struct {
	addr string
	dir  string
	cmd  *exec.Cmd // nil when it was there
}

func startServer(addr string) (*server, error) {
	if addr != "" {
		return &server{addr: addr}, nil
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("no redis-server on the PATH: install it, or say -redis ADDR")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: ln.Addr().String()}
	ln.Close()
	if s.dir, err = os.MkdirTemp("", "headgate-shared"); err != nil {
		return nil, err
	}
	return s, s.start()
}

func (s *server) start() error {
	_, port, _ := net.SplitHostPort(s.addr)
	s.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--logfile", filepath.Join(s.dir, "log"))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	c := redis.NewClient(&redis.Options{Addr: s.addr})
	defer c.Close()
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = c.Ping(context.Background()).Err(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("redis-server does not answer: %w", err)
}

func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

func (s *server) close() {
	s.kill()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// wire opens connections that are as far away as asked, and counts what is sent:
// with one command at a time on a connection, a write is a round trip.
type wire struct {
	rtt   time.Duration
	trips atomic.Int64
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &farConn{Conn: c, wire: w}, nil
}

type farConn struct {
	net.Conn
	wire *wire
}

func (c *farConn) Write(b []byte) (int, error) {
	c.wire.trips.Add(1)
	time.Sleep(c.wire.rtt)
	return c.Conn.Write(b)
}

// client has the library's own settings but for the wire.
func (s *server) client(w *wire) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr, Dialer: w.dial})
}
