package policy

import (
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// pool is [admission.Pool].
type pool struct {
	Limit           law   `yaml:"limit"`
	MaxWait         wait  `yaml:"max_wait"`
	MaxWaiting      Int   `yaml:"max_waiting"`
	MaxWaitingBytes Bytes `yaml:"max_waiting_bytes"`
	CriticalReserve Int   `yaml:"critical_reserve"`
}

func (p pool) options(at place) admission.Pool {
	pool := admission.Pool{
		Limit: p.Limit.options(at.in("limit")), MaxWait: time.Duration(p.MaxWait),
		MaxWaiting: int(p.MaxWaiting), MaxWaitingBytes: int64(p.MaxWaitingBytes), CriticalReserve: int(p.CriticalReserve),
	}
	if pool.Limit == nil {
		return pool // said already
	}
	_, err := queue.NewSlots(queue.Config{
		Limit: pool.Limit, MaxWait: pool.MaxWait, MaxWaiting: pool.MaxWaiting, MaxWaitingBytes: pool.MaxWaitingBytes, CriticalReserve: pool.CriticalReserve,
	})
	at.wrong(err)
	return pool
}

// law is one [shed.Limit]: the way the number of slots is found. Empty:
// [shed.Throughput] with its defaults.
type law struct {
	Throughput *throughput `yaml:"throughput"`
	Gradient2  *gradient2  `yaml:"gradient2"`
	Vegas      *vegas      `yaml:"vegas"`
	AIMD       *aimd       `yaml:"aimd"`
	Fixed      *Int        `yaml:"fixed"`
}

// throughput is [shed.Throughput].
type throughput struct {
	Min           Int      `yaml:"min"`
	Max           Int      `yaml:"max"`
	Initial       Int      `yaml:"initial"`
	TargetLatency Duration `yaml:"target_latency"`
}

// gradient2 is [shed.Gradient2].
type gradient2 struct {
	Min       Int    `yaml:"min"`
	Max       Int    `yaml:"max"`
	Initial   Int    `yaml:"initial"`
	Tolerance number `yaml:"tolerance"`
}

// vegas is [shed.Vegas].
type vegas struct {
	Min     Int `yaml:"min"`
	Max     Int `yaml:"max"`
	Initial Int `yaml:"initial"`
}

// aimd is [shed.AIMD].
type aimd struct {
	Min     Int    `yaml:"min"`
	Max     Int    `yaml:"max"`
	Initial Int    `yaml:"initial"`
	Backoff number `yaml:"backoff"`
}

// options returns the law, or nil when it makes no sense.
func (l law) options(at place) shed.Limit {
	all := l.all()
	switch len(all) {
	case 0:
		return shed.Throughput{}
	case 1:
		if _, err := all[0].New(); err != nil {
			at.wrong(err)
			return nil
		}
		return all[0]
	}
	at.wrongf("one law, not %d", len(all))
	return nil
}

// all returns the laws that are set.
func (l law) all() (all []shed.Limit) {
	if t := l.Throughput; t != nil {
		all = append(all, shed.Throughput{
			Min: int(t.Min), Max: int(t.Max), Initial: int(t.Initial), TargetLatency: time.Duration(t.TargetLatency),
		})
	}
	if g := l.Gradient2; g != nil {
		all = append(all, shed.Gradient2{Min: int(g.Min), Max: int(g.Max), Initial: int(g.Initial), Tolerance: float64(g.Tolerance)})
	}
	if v := l.Vegas; v != nil {
		all = append(all, shed.Vegas{Min: int(v.Min), Max: int(v.Max), Initial: int(v.Initial)})
	}
	if a := l.AIMD; a != nil {
		all = append(all, shed.AIMD{Min: int(a.Min), Max: int(a.Max), Initial: int(a.Initial), Backoff: float64(a.Backoff)})
	}
	if l.Fixed != nil {
		all = append(all, shed.Fixed(*l.Fixed))
	}
	return all
}
