//go:build !linux

package redistest

import "syscall"

// WithParent can tie no process to the test's own here.
func WithParent() *syscall.SysProcAttr { return nil }

// Suspend is not to be had on every system: the test is skipped.
func (s *Server) Suspend() { s.t.Skip("a server is suspended on Linux only") }

// Resume does nothing.
func (s *Server) Resume() {}
