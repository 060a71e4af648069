package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is one process that listens on a port of loopback.
type Server struct {
	Addr    string
	program string
	dir     string
	args    []string
	cmd     *exec.Cmd
	admin   *redis.Client
}

// Server starts one, with further arguments of the command line. It answers when
// Server returns.
func (r *Rig) Server(args ...string) (*Server, error) {
	return r.start([]string{"--save", "", "--appendonly", "no", "--enable-debug-command", "yes"}, args)
}

func (r *Rig) start(first, args []string) (*Server, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.servers++
	dir := filepath.Join(r.dir, fmt.Sprint(r.servers))
	r.mu.Unlock()
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	s := &Server{Addr: addr, program: r.Program, dir: dir}
	s.args = append(append(first, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--logfile", filepath.Join(dir, "log")), args...)
	s.admin = redis.NewClient(&redis.Options{Addr: addr, Password: PasswordOf(args), MaxRetries: -1, ReadTimeout: 30 * time.Second})
	r.later(s.close)
	if err := s.Start(); err != nil {
		return nil, err
	}
	return s, s.Wait()
}

// PasswordOf returns what a command line sets as the password.
func PasswordOf(args []string) string {
	if i := slices.Index(args, "--requirepass"); i >= 0 {
		return args[i+1]
	}
	return ""
}

// Start starts the process, again too: with the data it saved.
func (s *Server) Start() error {
	s.cmd = exec.Command(s.program, s.args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return s.cmd.Start()
}

// Wait returns when the server answers, and has loaded its data.
func (s *Server) Wait() error {
	var last error
	err := Until(context.Background(), 30*time.Second, s.program+" answers", func() bool {
		last = s.admin.Ping(context.Background()).Err()
		return last == nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// Kill ends the process at once.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Save ends the process with its data on disk.
func (s *Server) Save() {
	_ = s.admin.Do(context.Background(), "shutdown", "save").Err() // the answer is that the connection closes
	if s.cmd != nil {
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Suspend stops the process where it is; its sockets stay open.
func (s *Server) Suspend() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// Do runs a command.
func (s *Server) Do(args ...any) (any, error) {
	v, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil {
		return v, fmt.Errorf("%v: %w", args, err)
	}
	return v, nil
}

// All runs commands until one fails.
func (s *Server) All(commands ...[]any) error {
	for _, c := range commands {
		if _, err := s.Do(c...); err != nil {
			return err
		}
	}
	return nil
}

// says reports whether a command's answer has text in it.
func (s *Server) says(text string, args ...any) bool {
	v, err := s.Do(args...)
	return err == nil && strings.Contains(fmt.Sprint(v), text)
}

// IsPrimary reports whether the server says that it is one.
func (s *Server) IsPrimary() bool {
	return s.cmd != nil && s.says("role:master", "info", "replication")
}

func (s *Server) close() {
	s.Kill()
	s.admin.Close()
}

// Port returns the port alone.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}
