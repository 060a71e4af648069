// Package rig starts real servers on loopback, and links to them that are slow, lossy or
// dead: for programs that measure, and for their tests.
package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Rig holds what a scene started, and ends all of it with Close.
type Rig struct {
	Program string // redis-server or valkey-server
	dir     string
	mu      sync.Mutex
	ends    []func()
	servers int
}

// New returns a rig without servers. A program that is not on the PATH is an error.
func New(program string) (*Rig, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("no %s on the PATH: %w", program, err)
	}
	dir, err := os.MkdirTemp("", "headgate-rig")
	if err != nil {
		return nil, err
	}
	return &Rig{Program: program, dir: dir, ends: []func(){func() { os.RemoveAll(dir) }}}, nil
}

// Close ends what was started, the last first.
func (r *Rig) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.ends) - 1; i >= 0; i-- {
		r.ends[i]()
	}
	r.ends = nil
}

func (r *Rig) later(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, f)
}

var ports sync.Map // handed out in this run

// freeAddr returns an address without a listener. It stays below the ports that the
// system gives to connections, and so does the bus of a cluster node, which is 10000
// above.
func freeAddr() (string, error) {
	for range 1000 {
		port := 10240 + rand.IntN(12000)
		if _, taken := ports.LoadOrStore(port, true); !taken && free(port) && free(port+10000) {
			return fmt.Sprintf("127.0.0.1:%d", port), nil
		}
	}
	return "", errors.New("no free port")
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	return err == nil && l.Close() == nil
}

// Until returns when ok holds, or an error that names what did not come in time.
func Until(ctx context.Context, within time.Duration, what string, ok func() bool) error {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return fmt.Errorf("not within %v: %s", within, what)
}
