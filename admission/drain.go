package admission

import (
	"context"
	"fmt"
)

// DrainError is what [Gate.Drain] returns when its context ended first.
type DrainError struct {
	Running int   // work that still holds a slot
	Streams int   // streams still open
	Err     error // the context's error
}

// Error says how much is left.
func (e *DrainError) Error() string {
	return fmt.Sprintf("admission: drain: %d running and %d streams left: %v", e.Running, e.Streams, e.Err)
}

// Unwrap returns the context's error.
func (e *DrainError) Unwrap() error { return e.Err }

// Drain shuts the gate: what waits is answered with 503 at once, newcomers get 503
// and Connection: close, running work goes on. It blocks until the last of it has
// ended, or ctx has: then it returns a *[DrainError] that says what is left. Call
// it before http.Server.Shutdown. Exempt routes are served throughout. A gate does
// not open again. Several calls may wait at once.
func (g *Gate) Drain(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.beginDrain()
	for {
		running, streams := g.left()
		if running+streams == 0 {
			g.notifyIdle() // for others that wait here
			return nil
		}
		select {
		case <-g.idle:
		case <-ctx.Done():
			return &DrainError{Running: running, Streams: streams, Err: ctx.Err()}
		}
	}
}

func (g *Gate) beginDrain() {
	g.draining.Store(true)
	c := g.config.Load()
	c.pool.slots.Drain()
	for _, p := range c.pools {
		p.slots.Drain()
	}
}

func (g *Gate) left() (running, streams int) {
	c := g.config.Load()
	running = c.pool.slots.Stats().InFlight
	for _, p := range c.pools {
		running += p.slots.Stats().InFlight
	}
	return running, int(g.streams.Load())
}

// notifyIdle tells a waiting Drain to look again. A release lowers the counts
// before it reads draining, and Drain sets draining before it reads the counts, so
// one of the two sees the other.
func (g *Gate) notifyIdle() {
	select {
	case g.idle <- struct{}{}:
	default:
	}
}
