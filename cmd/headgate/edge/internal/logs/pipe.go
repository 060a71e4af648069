// Package logs keeps logging from standing in the way of what it is about: a line that
// cannot be written is dropped, and a fault that lasts is told once in a while.
package logs

import (
	"io"
	"sync/atomic"
	"time"
)

// Pipe is a writer that never blocks and never fails. What it writes to may be a pipe
// whose reader stalls, or has gone: lines beyond its memory are dropped and counted.
// It is safe for concurrent use.
type Pipe struct {
	lines   chan []byte
	dropped atomic.Uint64
	done    chan struct{}
	closing chan struct{}
}

const pipeLines = 1024

// NewPipe returns a Pipe to out. A goroutine writes until Close.
func NewPipe(out io.Writer) *Pipe {
	p := &Pipe{lines: make(chan []byte, pipeLines), done: make(chan struct{}), closing: make(chan struct{})}
	go p.drain(out)
	return p
}

// Write takes a copy of line, or drops it.
func (p *Pipe) Write(line []byte) (int, error) {
	select {
	case p.lines <- append([]byte(nil), line...):
	default:
		p.dropped.Add(1)
	}
	return len(line), nil
}

// Dropped returns how many lines were dropped.
func (p *Pipe) Dropped() uint64 { return p.dropped.Load() }

// Close writes what is left, for at most the time given. Call it once; lines that are
// written later are dropped in the end.
func (p *Pipe) Close(longest time.Duration) {
	close(p.closing)
	select {
	case <-p.done:
	case <-time.After(longest):
	}
}

func (p *Pipe) drain(out io.Writer) {
	defer close(p.done)
	for {
		select {
		case line := <-p.lines:
			_, _ = out.Write(line) // a log without a reader is no reason to stop
		case <-p.closing:
			p.rest(out)
			return
		}
	}
}

func (p *Pipe) rest(out io.Writer) {
	for {
		select {
		case line := <-p.lines:
			_, _ = out.Write(line)
		default:
			return
		}
	}
}
