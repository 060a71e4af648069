package main

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A short version of the incident, in both ways.
func short(naive bool) scenario {
	s := incident
	s.naive, s.devices, s.tightened = naive, 70, 20
	s.after, s.limit = 60, 15*time.Second
	return s
}

// play runs a scenario over pipes and on fake time, so that its end is the same on
// every machine.
func play(t *testing.T, s scenario) (r report, log string) {
	synctest.Test(t, func(t *testing.T) {
		var w strings.Builder
		var err error
		if r, err = run(&w, s, pipes()); err != nil {
			t.Fatal(err)
		}
		log = w.String()
	})
	return r, log
}

// pipes is a network of net.Pipes.
func pipes() network {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return network{
		listen: func() (net.Listener, error) { return l, nil },
		dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			near, far := net.Pipe()
			select {
			case l.conns <- far:
				return near, nil
			case <-l.closed:
				return nil, net.ErrClosed
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func TestPacedLosesNothing(t *testing.T) {
	s := short(false)
	r, log := play(t, s)
	if r.lost != 0 || r.deleted != 0 || r.opened != 0 {
		t.Errorf("%d lost, %d deleted, breaker opened %d times", r.lost, r.deleted, r.opened)
	}
	if r.before > allowed(s.quota) || r.after > allowed(s.tightened) || r.refused > 40 {
		t.Errorf("busiest seconds %d and %d, %d turned away", r.before, r.after, r.refused)
	}
	if !strings.Contains(log, "in force") {
		t.Errorf("no numbers in force in the log:\n%s", log)
	}
}

func TestNaiveDeletesHealthyDevices(t *testing.T) {
	r, _ := play(t, short(true))
	if r.deleted == 0 || r.lost == 0 || r.opened == 0 {
		t.Errorf("%d deleted, %d lost, breaker opened %d times: the failure is gone", r.deleted, r.lost, r.opened)
	}
}
