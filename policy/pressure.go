package policy

import (
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed/pressure"
)

// pressureGuard is [pressure.Guard] with the signals that a process has by itself. A
// program may add its own to the options.
type pressureGuard struct {
	Heap      *signal  `yaml:"heap"`      // pressure.Heap
	Scheduler *signal  `yaml:"scheduler"` // pressure.SchedulerLatency
	Every     Duration `yaml:"every"`
	Hold      Duration `yaml:"hold"`
	Cohort    number   `yaml:"cohort"`
}

// signal is when a signal is high and low again; zero is the signal's default.
type signal struct {
	High number `yaml:"high"`
	Low  number `yaml:"low"`
}

func (p pressureGuard) options(at place) admission.Pressure {
	guard := pressure.Guard{Every: time.Duration(p.Every), Hold: time.Duration(p.Hold), Cohort: float64(p.Cohort)}
	for _, one := range []struct {
		says *signal
		make func() pressure.Signal
	}{{p.Heap, pressure.Heap}, {p.Scheduler, pressure.SchedulerLatency}} {
		if one.says != nil {
			guard.Signals = append(guard.Signals, one.says.apply(one.make()))
		}
	}
	if len(guard.Signals) == 0 && guard.Every == 0 && guard.Hold == 0 && guard.Cohort == 0 {
		return nil
	}
	_, err := guard.New()
	at.wrong(err)
	return guard
}

// apply puts the file's numbers over the signal's own. A high of its own brings the
// default low with it.
func (s signal) apply(to pressure.Signal) pressure.Signal {
	if s.High != 0 {
		to.High, to.Low = float64(s.High), 0
	}
	if s.Low != 0 {
		to.Low = float64(s.Low)
	}
	return to
}
