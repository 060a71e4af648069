package outbound

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// PacerOptions configures a Pacer. The zero value paces nobody until a server asks
// for it.
type PacerOptions struct {
	// Rate is the quota: tokens per key. Nil means ratelimit.Unlimited, which
	// adapts too: the first throttle sets the rate to a share of the one measured.
	// A limiter in memory gives each Pacer balances of its own: what is to stay
	// under one ceiling shares the Pacer.
	Rate ratelimit.Limiter

	// MaxWait is the longest a call waits for its turn, whatever its deadline.
	// Zero means 60 s. It bounds the line: whoever would wait longer is refused at
	// once.
	MaxWait time.Duration

	// MaxPause is the longest a server's hint keeps everybody away. Zero means 1 h.
	MaxPause time.Duration

	// Budget is the retry budget of each operation. The zero value is the default.
	Budget BudgetOptions

	// InFlight bounds the calls in flight to each service (to each Space). Nil
	// means unbounded. Calls beyond it wait, at most MaxWait, in a queue of at most
	// 1024.
	InFlight shed.Limit

	// MaxOperations bounds the number of keys tracked. Zero means 1024. Beyond it,
	// new keys share one operation.
	MaxOperations int
}

const (
	defaultMaxWait       = time.Minute
	defaultMaxPause      = time.Hour
	defaultMaxOperations = 1024
	slotBound            = 1024

	// A quota that is spent without a word on when it returns is asked once a minute.
	quotaPause = time.Minute
)

// NewPacer validates o and builds a Pacer. Errors name the field.
func NewPacer(o PacerOptions) (*Pacer, error) {
	if o.Rate == nil {
		o.Rate = ratelimit.Unlimited
	}
	o.MaxWait = withDefault(o.MaxWait, defaultMaxWait)
	o.MaxPause = withDefault(o.MaxPause, defaultMaxPause)
	o.MaxOperations = withDefault(o.MaxOperations, defaultMaxOperations)
	if err := errors.Join(
		named("Rate", o.Rate.Validate()),
		positive("MaxWait", o.MaxWait),
		positive("MaxPause", o.MaxPause),
		positive("MaxOperations", o.MaxOperations),
		named("Budget", o.Budget.validate()),
	); err != nil {
		return nil, err
	}
	p := &Pacer{opts: o, start: time.Now(), ops: map[ratelimit.Key]*operation{}, services: map[string]*service{}}
	svc, err := p.newService() // and the configuration of the slots is known to be good
	if err != nil {
		return nil, named("InFlight", err)
	}
	if own, ok := o.Rate.(ratelimit.Owner); ok {
		p.opts.Rate = own.Own(nil)
	}
	p.overflow = p.newOperation(ratelimit.Key{Space: "overflow"}, svc)
	return p, nil
}

func withDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func positive[T int | time.Duration](field string, v T) error {
	if v <= 0 {
		return fmt.Errorf("outbound: %s = %v: must be positive", field, v)
	}
	return nil
}

func named(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outbound: %s: %w", field, err)
}
