package policy

import (
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/shed"
)

// Outbound is [outbound.Options] as a file spells it.
type Outbound struct {
	Name           string   `yaml:"name"`
	Rate           *Limit   `yaml:"rate"`
	MaxWait        Duration `yaml:"max_wait"`
	MaxPause       Duration `yaml:"max_pause"`
	Budget         Budget   `yaml:"budget"`
	MaxOperations  Int      `yaml:"max_operations"`
	InFlight       *Law     `yaml:"in_flight"`
	Retry          Retry    `yaml:"retry"`
	AttemptTimeout Duration `yaml:"attempt_timeout"`
	DeadlineHeader string   `yaml:"deadline_header"`
	LevelHeader    string   `yaml:"level_header"`
	CountResends   bool     `yaml:"count_resends"`
}

// Budget is [outbound.BudgetOptions]. A negative number allows nothing.
type Budget struct {
	Ratio Number `yaml:"ratio"`
	Floor Number `yaml:"floor"`
}

// Retry is [outbound.RetryOptions].
type Retry struct {
	Attempts   Int      `yaml:"attempts"`
	MaxHint    Duration `yaml:"max_hint"`
	MinBackoff Duration `yaml:"min_backoff"`
	MaxBackoff Duration `yaml:"max_backoff"`
}

func (o *Outbound) options(at place, ls limits) outbound.Options {
	return outbound.Options{
		Name:           o.Name,
		Rate:           o.Rate.limiter(at.in("rate"), ls),
		MaxWait:        time.Duration(o.MaxWait),
		MaxPause:       time.Duration(o.MaxPause),
		Budget:         outbound.BudgetOptions{Ratio: float64(o.Budget.Ratio), Floor: float64(o.Budget.Floor)},
		MaxOperations:  int(o.MaxOperations),
		InFlight:       o.inFlight(at.in("in_flight")),
		AttemptTimeout: time.Duration(o.AttemptTimeout),
		DeadlineHeader: o.DeadlineHeader,
		LevelHeader:    o.LevelHeader,
		CountResends:   o.CountResends,
		Retry: outbound.RetryOptions{
			Attempts: int(o.Retry.Attempts), MaxHint: time.Duration(o.Retry.MaxHint),
			MinBackoff: time.Duration(o.Retry.MinBackoff), MaxBackoff: time.Duration(o.Retry.MaxBackoff),
		},
	}
}

func (o *Outbound) inFlight(at place) shed.Limit {
	if o.InFlight == nil {
		return nil
	}
	return o.InFlight.options(at)
}
