package ratelimit

import (
	"errors"
	"fmt"
)

// Option changes a limiter in memory at set-up.
type Option func(*settings)

type settings struct {
	name    string
	maxKeys int
	shared  bool // one bucket for all keys
}

// DefaultMaxKeys bounds the table of a limiter that does not say otherwise.
const DefaultMaxKeys = 1_000_000

// Name names the limit in headers, metrics and logs. The default is "default", or
// "global" for [Global]. A reload keeps the balances of a limit of the same name.
func Name(name string) Option { return func(s *settings) { s.name = name } }

// MaxKeys bounds how many keys have a bucket of their own, some 90 bytes each;
// further keys share one. The default is [DefaultMaxKeys].
func MaxKeys(n int) Option { return func(s *settings) { s.maxKeys = n } }

func (s *settings) validate() error {
	switch {
	case s.name == "":
		return errors.New("Name is empty")
	case s.maxKeys < 1:
		return fmt.Errorf("MaxKeys is %d, must be at least 1", s.maxKeys)
	}
	return nil
}

// fail keeps the first error, naming the limit and the plan.
func (b *Buckets) fail(plan string, err error) {
	switch {
	case err == nil || b.err != nil:
	case plan != "":
		b.err = fmt.Errorf("ratelimit: limit %q: plan %q: %w", b.name, plan, err)
	default:
		b.err = fmt.Errorf("ratelimit: limit %q: %w", b.name, err)
	}
}
