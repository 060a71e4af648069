package admission

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Gate decides which requests a service takes, which wait, and which are turned
// away. It is safe for concurrent use, starts no goroutine, and is at work as long
// as somebody holds it. A nil *Gate lets everything through.
type Gate struct {
	id       uint64
	tally    tally
	limited  *limited // who is over its own limits
	shares   *tenantShares
	streams  atomic.Int64 // work that left its slot and goes on
	clock    clock
	draining atomic.Bool
	refusing shed.Reason   // in tests of handlers: refuse everything for it; else Admitted
	idle     chan struct{} // hears of releases while draining
	config   atomic.Pointer[config]

	mu     sync.Mutex // guards set-up: routes and changes of config
	routes []*route
}

// config is what Options became: built at set-up, only read afterwards.
type config struct {
	Options
	pool      *pool            // the unnamed one
	pools     map[string]*pool // the named ones
	rules     *rules           // nil: no Routes
	addresses *Addresses
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
	g := &Gate{id: gates.Add(1), idle: make(chan struct{}, 1), limited: newLimited(), shares: newTenantShares()}
	c, err := build(opts, nil)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	g.config.Store(c)
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
		g.serve(w, r, g.config.Load().rules.rank(r, fallback), next)
	})
}

// Close drains without waiting: what waits is answered, newcomers are refused,
// running work goes on. It may be called more than once.
func (g *Gate) Close() error {
	if g != nil {
		g.beginDrain()
	}
	return nil
}

// build makes a config of opts, with the balances of prev, if any.
func build(opts Options, prev *config) (*config, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	addresses, err := opts.ClientIP.compile()
	if err != nil {
		return nil, err
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
	if c.rules, err = newRules(opts.Routes, old, c.find); err != nil {
		return nil, err
	}
	c.own(prev)
	return c, nil
}

func (c *config) makePools() error {
	slots, err := queue.NewSlots(c.main().config())
	if err != nil {
		return fmt.Errorf("Options: %w", err)
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
