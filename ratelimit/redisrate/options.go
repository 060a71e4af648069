package redisrate

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/redisrate/internal/account"
)

// Options are what may be set. The zero value is good; negative numbers are errors from
// Validate.
type Options struct {
	// Name tells ceilings apart: limiters with one name, on one Redis, are one ceiling.
	// Two different limits need two names. Empty: "default".
	Name string

	// Version orders configurations. While a new limit is rolled out, processes of both
	// configurations share the bucket: the numbers of the highest version are in force for
	// all of them, so that the bucket does not change with every call. With equal versions
	// the numbers of the last caller are.
	Version int64

	// OnOutage says what happens while the store is away.
	OnOutage ratelimit.Fail

	// MinPeers is the least number of processes to divide the ceiling by while the store
	// is away; 0: 1. Without it, a process that has never met the store takes the whole
	// ceiling, and so does each of those started during an outage.
	MinPeers int

	// Portion is the part of the ceiling that all shares together make up during an outage,
	// in (0, 1]; 0: 1. 0.8 suits a quota that must not be broken even when processes are
	// started meanwhile.
	Portion float64

	// Interval is how much demand a lease covers; 0: 50 ms. Shorter means more calls and
	// finer slices. 100 ms suits the calls a service makes.
	Interval time.Duration

	// Ahead is how far ahead of the rate slots may be handed out, by all processes together;
	// 0: 50 ms. Half of a lease is fetched while the other half is spent. More means larger
	// leases and fewer calls, and after a sudden lull slots of that much time lie unspent
	// until they are given back.
	Ahead time.Duration

	// NoLeases makes every admission a call: nothing is handed out ahead.
	NoLeases bool

	// RequestTimeout is how long a request may wait for the store, and CallTimeout how long
	// a call may take before it counts as lost, not counting a connection that it has to
	// make first (1 s at most); 0: 500 ms. Neither is exceeded, whatever the
	// round trip. Without a RequestTimeout a request waits 1.5 times the measured round trip,
	// at least 20 ms and at most 250 ms (100 ms before the first answer). One below the round
	// trip works: the answer is kept for the key's next request.
	RequestTimeout, CallTimeout time.Duration

	// MaxKeys bounds the keys tracked in this process; 0: 65536. What a key's bucket holds
	// is in Redis, so forgetting a key costs a call, never a token.
	MaxKeys int

	// Logger logs when the store goes away and when it is back, at most once a second;
	// nil: slog.Default().
	Logger *slog.Logger
}

// config is a limiter's configuration. It is not changed after set-up.
type config struct {
	account.Config
	name    string
	tiers   tiers
	fixed   bool          // the timeouts do not follow the round trip
	cold    time.Duration // a request's patience with the store, when fixed
	budget  time.Duration // a call's
	maxKeys int
	log     *slog.Logger
}

// config puts the defaults in the place of what is not set.
func (o Options) config() config {
	c := config{
		Config: account.Defaults(),
		name:   cmp.Or(o.Name, "default"),
		fixed:  o.RequestTimeout != 0, cold: o.RequestTimeout, budget: cmp.Or(o.CallTimeout, 500*time.Millisecond),
		maxKeys: cmp.Or(o.MaxKeys, 1<<16),
		log:     cmp.Or(o.Logger, slog.Default()),
	}
	c.Limit.Version, c.OnOutage = o.Version, o.OnOutage
	c.MinPeers, c.Portion = cmp.Or(o.MinPeers, c.MinPeers), cmp.Or(o.Portion, c.Portion)
	c.Law.Tau, c.Law.Ahead = cmp.Or(o.Interval, c.Law.Tau), cmp.Or(o.Ahead, c.Law.Ahead)
	if o.NoLeases {
		c.Law.Ahead = 0
	}
	return c
}

// Bounds of the numbers: beyond them micro-tokens and microseconds are not exact
// in a double any more, or a key would outlive the machine it is on.
const (
	maxRate  = 1e9
	maxBurst = 1_000_000_000
	maxFill  = 366 * 24 * time.Hour
)

func (c *config) validate() error {
	if c.tiers.rest.Allow == ratelimit.AllowMetered {
		if err := validateLimit(c.Limit, "rate", "burst"); err != nil {
			return err
		}
	}
	if err := c.tiers.validate(); err != nil {
		return err
	}
	switch {
	case c.Limit.Version < 0 || c.Limit.Version > 1<<53:
		return fmt.Errorf("redisrate: Version %d is not between 0 and 2^53", c.Limit.Version)
	case c.OnOutage > ratelimit.FailClosed:
		return fmt.Errorf("redisrate: OnOutage %d is not one of the policies", uint8(c.OnOutage))
	case c.MinPeers < 1 || c.MinPeers > 1_000_000:
		return fmt.Errorf("redisrate: MinPeers %d is not between 1 and 1000000", c.MinPeers)
	case !(c.Portion > 0 && c.Portion <= 1):
		return fmt.Errorf("redisrate: Portion %v is not in (0, 1]", c.Portion)
	case c.Law.Tau < time.Millisecond || c.Law.Tau > 10*time.Second:
		return fmt.Errorf("redisrate: Interval %v is not between 1ms and 10s", c.Law.Tau)
	case c.Law.Ahead < 0 || c.Law.Ahead > time.Second:
		return fmt.Errorf("redisrate: Ahead %v is not between 0 and 1s", c.Law.Ahead)
	case c.fixed && c.cold <= 0 || c.budget < c.cold || c.budget > 10*time.Second:
		return fmt.Errorf("redisrate: RequestTimeout %v, CallTimeout %v: want 0 < RequestTimeout <= CallTimeout <= 10s", c.cold, c.budget)
	case c.maxKeys < 1:
		return fmt.Errorf("redisrate: MaxKeys %d is below 1", c.maxKeys)
	}
	return nil
}

func validateLimit(l account.Limit, rateField, burstField string) error {
	switch {
	case l.Rate >= float64(rate.Inf):
		return fmt.Errorf("redisrate: %s is infinite; ratelimit.Unlimited is the way to have no limit", rateField)
	case !(l.Rate > 0) || l.Rate > maxRate:
		return fmt.Errorf("redisrate: %s %v is not above 0 and at most 1e9 a second", rateField, l.Rate)
	case l.Burst < 1 || l.Burst > maxBurst:
		return fmt.Errorf("redisrate: %s %d is not between 1 and 1e9", burstField, l.Burst)
	case float64(l.Burst)/l.Rate > maxFill.Seconds():
		return fmt.Errorf("redisrate: %s %d takes over a year to fill at this rate", burstField, l.Burst)
	}
	return nil
}

// policy is what c promises, before anything is known from the store.
func policyOf(l account.Limit, name string) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Rate: rate.Limit(l.Rate), Burst: l.Burst}
}

// tiers are the plans of a limiter: what was sold, and the configuration of those
// that are metered.
type tiers struct {
	rest  ratelimit.Plan
	plans map[string]ratelimit.Plan
	conf  map[string]*account.Config
}

func (ts *tiers) validate() error {
	for name, p := range ts.plans {
		if p.Allow > ratelimit.AllowNothing {
			return fmt.Errorf("redisrate: Allow of plan %q is %d, must be Metered, Everything or Nothing", name, p.Allow)
		}
		if p.Allow != ratelimit.AllowMetered {
			continue
		}
		if err := validateLimit(limitOf(p), "rate of plan "+name, "burst of plan "+name); err != nil {
			return err
		}
	}
	return nil
}

func limitOf(p ratelimit.Plan) account.Limit {
	return account.Limit{Rate: float64(p.Rate), Burst: p.Burst}
}

// setPlans copies the table, with the fallback's numbers where a plan has none.
func (c *config) setPlans(fallback ratelimit.Plan, plans map[string]ratelimit.Plan) {
	c.tiers = tiers{rest: fallback, plans: map[string]ratelimit.Plan{}, conf: map[string]*account.Config{}}
	for name, p := range plans {
		if p.Unset() {
			p.Rate, p.Burst, p.Allow = fallback.Rate, fallback.Burst, fallback.Allow
		}
		c.tiers.plans[name] = p
		d := c.Config
		d.Limit.Rate, d.Limit.Burst = float64(p.Rate), p.Burst
		c.tiers.conf[name] = &d
	}
}

// forPlan returns the configuration for callers of a plan.
func (c *config) forPlan(plan string) *account.Config {
	if d := c.tiers.conf[plan]; d != nil {
		return d
	}
	return &c.Config
}
