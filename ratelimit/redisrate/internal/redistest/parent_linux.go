package redistest

import "syscall"

// WithParent ends a process when the test's own does.
func WithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// Suspend stops the server where it is; its sockets stay open.
func (s *Server) Suspend() { s.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() { s.Signal(syscall.SIGCONT) }
