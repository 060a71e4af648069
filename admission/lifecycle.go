package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/headgate-go/headgate/ratelimit"
)

// Update replaces the gate's options while it works. Balances of limits of the
// same kind, work in flight, waiters and what the laws have learned are kept, and
// the new numbers count from now: who waits above a lowered bound stays, work
// above a lowered limit drains. On an error, which names the field, nothing
// changes. It does not block on requests and is safe for concurrent use.
//
// Name must be the same. A nil Observer keeps the one there is. A pool cannot go
// while a route uses it or work is in it. What At was told about a route stays. On
// a nil gate it is an error.
func (g *Gate) Update(opts Options) error {
	if g == nil {
		return errors.New("admission: Update of a nil gate")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	prev := g.config.Load()
	c, err := g.successor(opts, prev)
	if err != nil {
		return fmt.Errorf("admission: %w", err)
	}
	if err := c.adoptPools(prev); err != nil {
		return fmt.Errorf("admission: %w", err)
	}
	g.config.Store(c)
	if opts.Observer != nil && !sameObserver(c.Observer, prev.Observer) {
		c.Observer.Attach(c.Name, g.Stats)
	}
	if g.draining.Load() {
		g.beginDrain() // pools that are new
	}
	return nil
}

// successor builds the next config and checks it against what is in use.
func (g *Gate) successor(opts Options, prev *config) (*config, error) {
	if opts.Observer == nil {
		opts.Observer = prev.Observer
	}
	c, err := build(opts, prev)
	if err != nil {
		return nil, err
	}
	if c.Name != prev.Name {
		return nil, fmt.Errorf("Options.Name = %q: cannot change from %q", c.Name, prev.Name)
	}
	for _, rt := range g.routes {
		if c.find(rt.pool) == nil {
			return nil, fmt.Errorf("Options.Pools: %q is gone, but a route uses it", rt.pool)
		}
		if err := c.fits(rt); err != nil {
			return nil, err
		}
	}
	for name, p := range prev.pools {
		if c.pools[name] == nil && p.busy() {
			return nil, fmt.Errorf("Options.Pools: %q is gone, but work is in it", name)
		}
	}
	return c, nil
}

// fits reports what a route asks for that the gate does not have.
func (c *config) fits(rt *route) error {
	if c.find(rt.pool) == nil {
		return fmt.Errorf("InPool(%q): no such pool in Options.Pools", rt.pool)
	}
	for _, u := range rt.units {
		counts := func(l ratelimit.Limiter) bool { return ratelimit.Counts(l, u.name) }
		if !slices.ContainsFunc([]ratelimit.Limiter{c.Rate, c.Anonymous, c.Quota, rt.limit}, counts) {
			return fmt.Errorf("CostIn(%q): no limit counts it", u.name)
		}
	}
	return nil
}

// busy reports whether work holds a slot of p or waits for one.
func (p *pool) busy() bool {
	s := p.slots.Stats()
	for _, n := range s.Waiting {
		s.InFlight += n
	}
	return s.InFlight > 0
}

// sameObserver is a == b where values of their type can be compared, else false.
func sameObserver(a, b Observer) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// adoptPools puts the pools of prev in the place of those just built to check the
// numbers, with those numbers.
func (c *config) adoptPools(prev *config) error {
	if err := prev.pool.slots.Update(c.Options.Pool.config()); err != nil {
		return fmt.Errorf("Options.Pool: %w", err)
	}
	c.pool = prev.pool
	for name := range c.pools {
		old := prev.pools[name]
		if old == nil {
			continue
		}
		if err := old.slots.Update(c.Pools[name].config()); err != nil {
			return fmt.Errorf("Options.Pools[%q]: %w", name, err)
		}
		c.pools[name] = old
	}
	return nil
}

// own gives the limits balances of their own, or those of prev.
func (c *config) own(prev *config) {
	if prev == nil {
		prev = &config{}
	}
	c.Rate = ratelimit.Own(c.Rate, prev.Rate)
	c.Anonymous = ratelimit.Own(c.Anonymous, prev.Anonymous)
	c.Address = ratelimit.Own(c.Address, prev.Address)
	c.Quota = ratelimit.Own(c.Quota, prev.Quota)
	c.HTTP.PreflightRate = ratelimit.Own(c.HTTP.PreflightRate, prev.HTTP.PreflightRate)
	c.remote = !ratelimit.InMemory(c.Rate) || !ratelimit.InMemory(c.Anonymous) || !ratelimit.InMemory(c.Quota)
	c.plans, c.strangers = ratelimit.PlannerOf(c.Rate), ratelimit.PlannerOf(c.Anonymous)
}

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
	for _, p := range g.pools() {
		p.slots.Drain()
	}
}

func (g *Gate) left() (running, streams int) {
	for _, p := range g.pools() {
		running += p.slots.Stats().InFlight
	}
	return running, int(g.streams.Load())
}

// pools returns the pools that may have work in them: the unnamed one, the named ones
// by name, and those that a reload removed while work was on its way to them.
func (g *Gate) pools() []*pool {
	c := g.config.Load()
	all := []*pool{c.pool}
	for _, name := range slices.Sorted(maps.Keys(c.pools)) {
		all = append(all, c.pools[name])
	}
	return append(all, g.removed.busy()...)
}

// list adds p to the removed pools if it is one. It reports false for one of a gate that
// is shut: a Drain may have looked already.
func (g *Gate) list(p *pool) bool {
	if c := g.config.Load(); c.pool == p || c.pools[p.name] == p {
		return true
	}
	g.removed.add(p)
	if g.draining.Load() {
		p.slots.Drain()
		return false
	}
	return true
}

// removedPools are those that are in no config any more and still have work.
type removedPools struct {
	mu    sync.Mutex
	pools []*pool
}

func (r *removedPools) add(p *pool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	r.pools = append(slices.DeleteFunc(r.pools, func(q *pool) bool { return q == p }), p)
}

// busy returns those that have work, or will have it at once.
func (r *removedPools) busy() []*pool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
	return slices.Clone(r.pools)
}

// forget drops the idle ones. A visit lists its pool again when it has a slot.
func (r *removedPools) forget() {
	r.pools = slices.DeleteFunc(r.pools, func(p *pool) bool { return !p.busy() })
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

// Close drains without waiting: what waits is answered, newcomers are refused,
// running work goes on. It may be called more than once.
func (g *Gate) Close() error {
	if g != nil {
		g.beginDrain()
	}
	return nil
}
