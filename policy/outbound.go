package policy

import (
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/shed"
)

// outboundCalls is [outbound.Options] as a file spells it.
type outboundCalls struct {
	Name           string     `yaml:"name"`
	Rate           *limit     `yaml:"rate"`
	MaxWait        Duration   `yaml:"max_wait"`
	MaxPause       Duration   `yaml:"max_pause"`
	Budget         budget     `yaml:"budget"`
	MaxOperations  Int        `yaml:"max_operations"`
	InFlight       *law       `yaml:"in_flight"`
	Retry          retry      `yaml:"retry"`
	AttemptTimeout Duration   `yaml:"attempt_timeout"`
	DeadlineHeader headerName `yaml:"deadline_header"`
	LevelHeader    headerName `yaml:"level_header"`
	CountResends   bool       `yaml:"count_resends"`
}

// budget is [pacer.BudgetOptions]. A negative number allows nothing.
type budget struct {
	Ratio number `yaml:"ratio"`
	Floor number `yaml:"floor"`
}

// retry is [outbound.RetryOptions].
type retry struct {
	Attempts   Int      `yaml:"attempts"`
	MaxHint    Duration `yaml:"max_hint"`
	MinBackoff Duration `yaml:"min_backoff"`
	MaxBackoff Duration `yaml:"max_backoff"`
	MaxElapsed Duration `yaml:"max_elapsed"`
}

func (o *outboundCalls) options(at place, ls limits) outbound.Options {
	if o.Rate != nil && len(o.Rate.Plans) > 0 {
		at.in("rate", "plans").wrongf("plans are of callers: a call that goes out has none")
	}
	return outbound.Options{
		Name:           o.Name,
		Rate:           o.Rate.limiter(at.in("rate"), ls),
		MaxWait:        time.Duration(o.MaxWait),
		MaxPause:       time.Duration(o.MaxPause),
		Budget:         pacer.BudgetOptions{Ratio: float64(o.Budget.Ratio), Floor: float64(o.Budget.Floor)},
		MaxOperations:  int(o.MaxOperations),
		InFlight:       o.inFlight(at.in("in_flight")),
		AttemptTimeout: time.Duration(o.AttemptTimeout),
		DeadlineHeader: string(o.DeadlineHeader),
		LevelHeader:    string(o.LevelHeader),
		CountResends:   o.CountResends,
		Retry: outbound.RetryOptions{
			Attempts: int(o.Retry.Attempts), MaxHint: time.Duration(o.Retry.MaxHint),
			MinBackoff: time.Duration(o.Retry.MinBackoff), MaxBackoff: time.Duration(o.Retry.MaxBackoff),
			MaxElapsed: time.Duration(o.Retry.MaxElapsed),
		},
	}
}

func (o *outboundCalls) inFlight(at place) shed.Limit {
	if o.InFlight == nil {
		return nil
	}
	return o.InFlight.options(at)
}
