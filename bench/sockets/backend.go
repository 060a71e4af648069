package sockets

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// backend is what the server works with: so many pieces of work at once, each in about
// the time of the phase.
type backend struct {
	scenario *Scenario
	slots    chan struct{}
	phase    atomic.Int32
	running  atomic.Int64
	counts   []counts // by phase
}

// counts are what the backend did in a phase.
type counts struct {
	done   atomic.Int64 // pieces, whether whole or broken off
	wasted atomic.Int64 // of those, for clients that had left
}

func newBackend(s *Scenario) *backend {
	return &backend{scenario: s, slots: make(chan struct{}, s.Width), counts: make([]counts, len(s.Phases))}
}

// do is one piece of work of the given size, for a client that waits until deadline. A
// backend that obeys gives up with ctx, as a database does with a query whose context
// ends; another ends what it was asked for, whether or not the client is still there.
func (b *backend) do(ctx context.Context, size float64, deadline time.Time) error {
	if !b.scenario.Obeys {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.slots }()
	timer := time.NewTimer(b.length(size, int(b.running.Add(1))))
	defer timer.Stop()
	defer b.running.Add(-1)
	defer b.count(deadline)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// length draws the time of a piece beside so many others.
func (b *backend) length(size float64, running int) time.Duration {
	mean := size * float64(b.scenario.Phases[b.phase.Load()].Work)
	if over := running - b.scenario.Knee; b.scenario.Knee > 0 && over > 0 {
		mean *= math.Pow(1+b.scenario.Drag, float64(over))
	}
	return time.Duration(mean * math.Exp(sigma*rand.NormFloat64()-sigma*sigma/2))
}

func (b *backend) count(deadline time.Time) {
	c := &b.counts[b.phase.Load()]
	c.done.Add(1)
	if !time.Now().Before(deadline) {
		c.wasted.Add(1)
	}
}
