package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// store is the Redis server the replicas share.
type store struct {
	addr string
	dir  string
	cmd  *exec.Cmd // nil if it is not ours
}

func startStore(addr string) (*store, error) {
	if addr != "" {
		return &store{addr: addr}, nil
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, fmt.Errorf("no redis-server on the PATH: install it, or say -redis ADDR")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &store{addr: l.Addr().String()}
	_ = l.Close()
	if s.dir, err = os.MkdirTemp("", "headgate-cluster"); err != nil {
		return nil, err
	}
	return s, s.start()
}

func (s *store) start() error {
	_, port, _ := net.SplitHostPort(s.addr)
	s.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--logfile", filepath.Join(s.dir, "log"))
	if err := s.cmd.Start(); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: 100})
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return rdb.Ping(ctx).Err()
}

func (s *store) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

func (s *store) stop() {
	s.kill()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
