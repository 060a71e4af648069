package policy

import (
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// Pool is [admission.Pool].
type Pool struct {
	Limit           Law   `yaml:"limit"`
	MaxWait         Wait  `yaml:"max_wait"`
	MaxWaiting      Int   `yaml:"max_waiting"`
	MaxWaitingBytes Bytes `yaml:"max_waiting_bytes"`
	CriticalReserve Int   `yaml:"critical_reserve"`
}

func (p Pool) options(at place) admission.Pool {
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

// Law is one [shed.Limit]: the way the number of slots is found. Empty:
// [shed.Throughput] with its defaults.
type Law struct {
	Throughput *Throughput `yaml:"throughput"`
	Gradient2  *Gradient2  `yaml:"gradient2"`
	Vegas      *Vegas      `yaml:"vegas"`
	AIMD       *AIMD       `yaml:"aimd"`
	Fixed      *Int        `yaml:"fixed"`
}

// Throughput is [shed.Throughput].
type Throughput struct {
	Min           Int      `yaml:"min"`
	Max           Int      `yaml:"max"`
	Initial       Int      `yaml:"initial"`
	TargetLatency Duration `yaml:"target_latency"`
}

// Gradient2 is [shed.Gradient2].
type Gradient2 struct {
	Min       Int    `yaml:"min"`
	Max       Int    `yaml:"max"`
	Initial   Int    `yaml:"initial"`
	Tolerance Number `yaml:"tolerance"`
}

// Vegas is [shed.Vegas].
type Vegas struct {
	Min     Int `yaml:"min"`
	Max     Int `yaml:"max"`
	Initial Int `yaml:"initial"`
}

// AIMD is [shed.AIMD].
type AIMD struct {
	Min     Int    `yaml:"min"`
	Max     Int    `yaml:"max"`
	Initial Int    `yaml:"initial"`
	Backoff Number `yaml:"backoff"`
}

// options returns the law, or nil when it makes no sense.
func (l Law) options(at place) shed.Limit {
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
func (l Law) all() (all []shed.Limit) {
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
