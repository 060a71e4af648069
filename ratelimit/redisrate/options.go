package redisrate

import (
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

// Outage says what happens to requests while the store is away.
type Outage uint8

// The policies for an outage.
const (
	FailShare  Outage = iota // each process admits its share of the ceiling; the default
	FailOpen                 // everything is let through
	FailClosed               // everything is refused
)

// String returns the policy's name in logs.
func (o Outage) String() string { return [...]string{"share", "open", "closed"}[o] }

// Option sets something that has a default.
type Option func(*config)

// Name tells ceilings apart: limiters with one name, on one Redis, are one
// ceiling. Two different limits need two names. The default is "default".
func Name(name string) Option { return func(c *config) { c.name = name } }

// Version orders configurations. While a new limit is rolled out, processes of
// both configurations share the bucket: the numbers of the highest version are in
// force for all of them, so that the bucket does not change with every call. With
// equal versions (the default is 0) the numbers of the last caller are.
func Version(v int64) Option { return func(c *config) { c.limit.version = v } }

// OnOutage says what happens while the store is away. The default is FailShare.
func OnOutage(o Outage) Option { return func(c *config) { c.outage = o } }

// MinPeers is the least number of processes to divide the ceiling by while the
// store is away. Without it, a process that has never met the store takes the
// whole ceiling, and so does each of those started during an outage. Default 1.
func MinPeers(n int) Option { return func(c *config) { c.minPeers = n } }

// Portion is the part of the ceiling that all shares together make up during an
// outage, in (0, 1]. The default is 1; 0.8 suits a quota that must not be broken
// even when processes are started meanwhile.
func Portion(p float64) Option { return func(c *config) { c.portion = p } }

// Interval is how much demand a lease covers. Shorter means more calls and finer
// slices. The default is 50 ms; 100 ms suits the calls a service makes.
func Interval(tau time.Duration) Option { return func(c *config) { c.law.tau = tau } }

// Ahead is how far ahead of the rate slots may be handed out, by all processes
// together: half of a lease is fetched while the other half is spent. More means
// larger leases and fewer calls, and after a sudden lull slots of that much time
// lie unspent until they are given back. The default is 50 ms; zero turns leases
// off, so that every admission is a call.
func Ahead(d time.Duration) Option { return func(c *config) { c.law.ahead = d } }

// Timeouts sets how long a request may wait for the store, and how long a call may
// take before it counts as lost. Neither is exceeded, whatever the round trip. By
// default a request waits 1.5 times the measured round trip, at least 20 ms and at
// most 250 ms (100 ms before the first answer), and a call may take 500 ms. A request
// timeout below the round trip works: the answer is kept for the key's next request.
func Timeouts(request, background time.Duration) Option {
	return func(c *config) { c.fixed, c.cold, c.budget = true, request, background }
}

// MaxKeys bounds the keys tracked in this process. What a key's bucket holds is
// in Redis, so forgetting a key costs a call, never a token. The default is 65536.
func MaxKeys(n int) Option { return func(c *config) { c.maxKeys = n } }

// Logger is told when the store goes away and when it is back, at most once a
// second. The default is slog.Default(); nil is silent.
func Logger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

// config is a limiter's configuration. It is not changed after set-up.
type config struct {
	name     string
	limit    limit
	tiers    tiers
	law      law
	outage   Outage
	minPeers int
	portion  float64
	fixed    bool          // the timeouts do not follow the round trip
	cold     time.Duration // a request's patience with the store, when fixed
	budget   time.Duration // a call's
	believe  time.Duration // how long the store's last word is believed
	maxKeys  int
	log      *slog.Logger
}

func defaults() config {
	return config{
		name:     "default",
		law:      law{tau: 50 * time.Millisecond, ahead: 50 * time.Millisecond},
		minPeers: 1,
		portion:  1,
		budget:   500 * time.Millisecond,
		believe:  5 * time.Second,
		maxKeys:  1 << 16,
		log:      slog.Default(),
	}
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
		if err := c.limit.validate("rate", "burst"); err != nil {
			return err
		}
	}
	if err := c.tiers.validate(); err != nil {
		return err
	}
	switch {
	case c.name == "":
		return fmt.Errorf("redisrate: Name is empty")
	case c.limit.version < 0 || c.limit.version > 1<<53:
		return fmt.Errorf("redisrate: Version %d is not between 0 and 2^53", c.limit.version)
	case c.outage > FailClosed:
		return fmt.Errorf("redisrate: OnOutage %d is not one of the policies", c.outage)
	case c.minPeers < 1 || c.minPeers > 1_000_000:
		return fmt.Errorf("redisrate: MinPeers %d is not between 1 and 1000000", c.minPeers)
	case !(c.portion > 0 && c.portion <= 1):
		return fmt.Errorf("redisrate: Portion %v is not in (0, 1]", c.portion)
	case c.law.tau < time.Millisecond || c.law.tau > 10*time.Second:
		return fmt.Errorf("redisrate: Interval %v is not between 1ms and 10s", c.law.tau)
	case c.law.ahead < 0 || c.law.ahead > time.Second:
		return fmt.Errorf("redisrate: Ahead %v is not between 0 and 1s", c.law.ahead)
	case c.fixed && c.cold <= 0 || c.budget < c.cold || c.budget > 10*time.Second:
		return fmt.Errorf("redisrate: Timeouts %v, %v: want 0 < request <= background <= 10s", c.cold, c.budget)
	case c.maxKeys < 1:
		return fmt.Errorf("redisrate: MaxKeys %d is below 1", c.maxKeys)
	}
	return nil
}

func (l limit) validate(rateField, burstField string) error {
	switch {
	case l.rate >= float64(rate.Inf):
		return fmt.Errorf("redisrate: %s is infinite; ratelimit.Unlimited is the way to have no limit", rateField)
	case !(l.rate > 0) || l.rate > maxRate:
		return fmt.Errorf("redisrate: %s %v is not above 0 and at most 1e9 a second", rateField, l.rate)
	case l.burst < 1 || l.burst > maxBurst:
		return fmt.Errorf("redisrate: %s %d is not between 1 and 1e9", burstField, l.burst)
	case float64(l.burst)/l.rate > maxFill.Seconds():
		return fmt.Errorf("redisrate: %s %d takes over a year to fill at this rate", burstField, l.burst)
	}
	return nil
}

// policy is what c promises, before anything is known from the store.
func (l limit) policy(name string) ratelimit.Policy {
	return ratelimit.Policy{Name: name, Rate: rate.Limit(l.rate), Burst: l.burst}
}
