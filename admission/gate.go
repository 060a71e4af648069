package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/internal/top"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Gate decides which requests a service takes, which wait, and which are turned
// away. It is safe for concurrent use, starts no goroutine, and is at work as long
// as it is referred to. A nil *Gate lets everything through.
type Gate struct {
	id       uint64
	tally    tally
	lists    lists      // which callers have most
	visited  top.Routes // visits that ended, by route
	direct   counts     // those of Admit
	shares   *tenantShares
	streams  atomic.Int64 // work that left its slot and goes on
	clock    clock
	draining atomic.Bool
	idle     chan struct{} // told of releases while draining
	config   atomic.Pointer[config]
	removed  removedPools

	mu     sync.Mutex // guards set-up: routes and changes of config
	routes []*route
	edge   *route // of requests to AdmitRequest that Options.Routes does not know
}

// config is what Options became: built at set-up, only read afterwards.
type config struct {
	Options
	pool      *pool            // the unnamed one
	pools     map[string]*pool // the named ones
	rules     *rules           // nil: no Routes
	addresses *caller.Addresses
	remote    bool       // a limit may take its time to decide
	gauge     shed.Gauge // nil: no pressure

	plans, strangers ratelimit.Planner // of Rate and Anonymous; nil: rates alone
}

// pool is one protected resource.
type pool struct {
	name  string
	slots *queue.Slots
}

// gates counts the gates of this process.
var gates atomic.Uint64

// New builds a gate. Its errors name the field of opts that makes no sense.
func New(opts Options) (*Gate, error) {
	g := &Gate{id: gates.Add(1), idle: make(chan struct{}, 1), lists: newLists(), shares: newTenantShares()}
	c, err := build(opts, nil)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	g.config.Store(c)
	g.edge = g.newRoute(priority.Normal, nil)
	if c.Observer != nil {
		c.Observer.Attach(c.Name, g.Stats)
	}
	return g, nil
}

// MustNew is like [New] and panics on an error, for gates built at start-up.
func MustNew(opts Options) *Gate {
	g, err := New(opts)
	if err != nil {
		panic(err)
	}
	return g
}

// Handler admits everything that next serves, at Normal, or as Options.Routes
// says. Requests that a router inside next does not match are admitted too. It
// panics when next is nil.
func (g *Gate) Handler(next http.Handler) http.Handler {
	if g == nil {
		return next
	}
	mustHandle("Handler", next)
	fallback := g.newRoute(priority.Normal, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(g, w, r, g.config.Load().rules.rank(r, fallback), next)
	})
}

// At returns the middleware that admits requests at the given level: the
// admission point. Put it on the route, behind the router's matching:
//
//	r.With(gate.At(priority.Critical)).Post("/checkout", checkout)
//
// Requests the router does not match never meet it. A gate met twice by one
// request decides once, where it is met first. One At is one admission point: what
// it wraps shares its caps and its own rate. Misuse (an invalid level, an unknown
// pool, contradictory options, a nil handler) panics here, at set-up. On a nil gate
// everything passes.
func (g *Gate) At(level priority.Level, opts ...RouteOption) func(http.Handler) http.Handler {
	if g == nil {
		return func(next http.Handler) http.Handler { return next }
	}
	rt := g.newRoute(level, opts)
	return func(next http.Handler) http.Handler {
		mustHandle("At", next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(g, w, r, rt, next) })
	}
}

func mustHandle(point string, next http.Handler) {
	if next == nil {
		panic("admission: " + point + ": the handler is nil")
	}
}

func (g *Gate) newRoute(level priority.Level, opts []RouteOption) *route {
	rt, err := makeRoute(level, opts, nil)
	if err != nil {
		panic("admission: At: " + err.Error())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.config.Load().fits(rt); err != nil {
		panic("admission: At: " + err.Error())
	}
	g.routes = append(g.routes, rt)
	rt.id = len(g.routes)
	return rt
}

// Admit asks for a slot for work that is not an HTTP request: a message, a job.
// It returns at once when the work is admitted or refused at the door; otherwise
// it waits in the queue until a slot is free, the work's allowance ends, or ctx
// does. A refusal is a *[Rejection], with the [shed.Reason] behind it. It
// allocates nothing unless it refuses. On a nil gate everything is admitted.
//
//	permit, err := gate.Admit(ctx, admission.Ticket{Level: priority.Batch})
//	if err != nil {
//		return err
//	}
//	defer permit.Release(shed.Served)
func (g *Gate) Admit(ctx context.Context, t Ticket) (Permit, error) {
	if g == nil {
		return Permit{}, nil
	}
	if t.Deadline.IsZero() {
		t.Deadline, _ = ctx.Deadline()
	}
	v := arrive(g, nil)
	v.tick()
	v.Ticket = t
	for unit, n := range t.Units {
		v.take(unit, n)
	}
	v.Level = v.asSold(t.Level)
	if !v.admit(ctx) {
		v.refused()
		rej := v.rejection()
		v.tellRefused()
		return Permit{}, rej
	}
	return Permit{pool: v.at, slot: v.slot, visit: v}, nil
}

// Alias returns the name by which the gate shows a caller to people: the caller's
// own Alias, cut to 64 bytes, or else a digest of its key that is the same for the
// life of the process and says nothing about the key.
func (g *Gate) Alias(c caller.Caller) string {
	if g == nil {
		return c.Alias
	}
	return top.Alias(c)
}

// Stats returns a snapshot. It takes each pool's lock once, for a moment. On a nil
// gate it is zero.
func (g *Gate) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	c := g.config.Load()
	s := Stats{
		Name: c.Name, ID: g.id, Draining: g.draining.Load(), Limits: limitStats(g, c),
		Streams: int(g.streams.Load()), Routes: g.visited.All(),
	}
	g.lists.read(time.Now(), &s)
	if s.Lowest = priority.Batch; c.gauge != nil {
		s.Lowest = c.gauge.Lowest(time.Now())
	}
	g.tally.read(&s)
	for _, p := range g.pools() {
		s.Pools = append(s.Pools, PoolStats{Name: p.name, Stats: p.slots.Stats()})
	}
	return s
}

// build makes a config of opts, with the balances of prev, if any.
func build(opts Options, prev *config) (*config, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	addresses, err := caller.NewAddresses(opts.ClientIP)
	if err != nil {
		return nil, errors.Unwrap(err) // without the name of the package
	}
	c := &config{Options: opts, addresses: addresses, pools: make(map[string]*pool, len(opts.Pools))}
	if c.Identify == nil {
		c.Identify = addresses.Identify
	}
	if err := c.makePools(); err != nil {
		return nil, err
	}
	if err := c.makeGauge(); err != nil {
		return nil, err
	}
	var old *rules
	if prev != nil {
		old = prev.rules
	}
	if c.rules, err = newRules(opts.Routes, old, c.fits); err != nil {
		return nil, err
	}
	c.own(prev)
	return c, nil
}

func (c *config) makePools() error {
	slots, err := queue.NewSlots(c.Options.Pool.config())
	if err != nil {
		return fmt.Errorf("Options.Pool: %w", err)
	}
	c.pool = &pool{slots: slots}
	for name, p := range c.Pools {
		slots, err := queue.NewSlots(p.config())
		if err != nil {
			return fmt.Errorf("Options.Pools[%q]: %w", name, err)
		}
		c.pools[name] = &pool{name: name, slots: slots}
	}
	return nil
}

func (c *config) makeGauge() error {
	if c.Pressure == nil {
		return nil
	}
	gauge, err := c.Pressure.New()
	if err != nil {
		return fmt.Errorf("Options.Pressure: %w", err)
	}
	c.gauge = gauge
	return nil
}

// find returns the named pool, or nil.
func (c *config) find(name string) *pool {
	if name == "" {
		return c.pool
	}
	return c.pools[name]
}

// clock tells the time at half the price of time.Now, which reads two clocks: the
// wall's is read once a second, and the monotonic one says what has passed since.
// A step of the wall clock is seen a second late; nothing else differs.
type clock struct{ anchor atomic.Pointer[time.Time] }

func (c *clock) now() time.Time {
	a := c.anchor.Load()
	if a != nil {
		if passed := time.Since(*a); passed < time.Second {
			return a.Add(passed)
		}
	}
	now := time.Now()
	c.anchor.Store(&now)
	return now
}
