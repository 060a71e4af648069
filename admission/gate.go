package admission

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// Gate decides which requests a service takes, which wait, and which are turned
// away. It is safe for concurrent use, starts no goroutine, and is at work as long
// as somebody holds it. A nil *Gate lets everything through.
type Gate struct {
	tally    tally
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
	shares    *tenantShares    // nil: no TenantCap
	addresses *Addresses
}

// pool is one protected resource.
type pool struct {
	name  string
	slots *queue.Slots
}

// New builds a gate. Its errors name the field of opts that makes no sense.
func New(opts Options) (*Gate, error) {
	g := &Gate{idle: make(chan struct{}, 1)}
	c, err := g.build(opts, nil)
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
// says. Requests that a router inside next does not match are admitted too.
func (g *Gate) Handler(next http.Handler) http.Handler { return g.At(priority.Normal)(next) }

// Close drains without waiting: what waits is answered, newcomers are refused,
// running work goes on. It may be called more than once.
func (g *Gate) Close() error {
	if g != nil {
		g.beginDrain()
	}
	return nil
}

// build makes a config of opts; prev, if any, hands over its balances and pools.
func (g *Gate) build(opts Options, prev *config) (*config, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	addresses, err := NewAddresses(opts.ClientIP)
	if err != nil {
		return nil, err
	}
	main, err := queue.NewSlots(opts.main().config())
	if err != nil {
		return nil, fmt.Errorf("Options: %w", err)
	}
	c := &config{
		Options: opts, addresses: addresses,
		pool: &pool{slots: main}, pools: make(map[string]*pool, len(opts.Pools)),
	}
	for name, p := range opts.Pools {
		slots, err := queue.NewSlots(p.config())
		if err != nil {
			return nil, fmt.Errorf("Options.Pools[%q]: %w", name, err)
		}
		c.pools[name] = &pool{name: name, slots: slots}
	}
	if opts.TenantCap > 0 {
		c.shares = newTenantShares(opts.TenantCap)
	}
	if c.Tenant == nil {
		c.Tenant = addresses.Identify
	}
	c.own(prev)
	return c, nil
}

// own gives the gate balances of its own, or those of prev.
func (c *config) own(prev *config) {
	if prev == nil {
		prev = &config{}
	}
	c.Rate = own(c.Rate, prev.Rate)
	c.Anonymous = own(c.Anonymous, prev.Anonymous)
	c.Address = own(c.Address, prev.Address)
	c.Quota = own(c.Quota, prev.Quota)
}

// find returns the named pool, or nil.
func (c *config) find(name string) *pool {
	if name == "" {
		return c.pool
	}
	return c.pools[name]
}
