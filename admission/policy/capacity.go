package policy

import (
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// Pool is [admission.Pool].
type Pool struct {
	Limit   Law   `yaml:"limit"`
	MaxWait Wait  `yaml:"max_wait"`
	Bound   Int   `yaml:"bound"`
	Bytes   Bytes `yaml:"bytes"`
	Reserve Int   `yaml:"reserve"`
}

func (p Pool) options(at place) admission.Pool {
	pool := admission.Pool{
		Limit: p.Limit.options(at.in("limit")), MaxWait: time.Duration(p.MaxWait),
		Bound: int(p.Bound), Bytes: int64(p.Bytes), Reserve: int(p.Reserve),
	}
	if pool.Limit == nil {
		return pool // said already
	}
	_, err := queue.NewSlots(queue.Config{
		Limit: pool.Limit, MaxWait: pool.MaxWait, Bound: pool.Bound, Bytes: pool.Bytes, Reserve: pool.Reserve,
	})
	at.wrong(err)
	return pool
}

// Law is one [shed.Limit]: the way the number of slots is found. Empty:
// [shed.Throughput] with its defaults.
type Law struct {
	Throughput *Throughput `yaml:"throughput"`
	Fixed      *Int        `yaml:"fixed"`
}

// Throughput is [shed.Throughput].
type Throughput struct {
	Min     Int      `yaml:"min"`
	Max     Int      `yaml:"max"`
	Initial Int      `yaml:"initial"`
	Promise Duration `yaml:"promise"`
}

// options returns the law, or nil when it makes no sense.
func (l Law) options(at place) shed.Limit {
	var all []shed.Limit
	if t := l.Throughput; t != nil {
		all = append(all, shed.Throughput{
			Min: int(t.Min), Max: int(t.Max), Initial: int(t.Initial), Promise: time.Duration(t.Promise),
		})
	}
	if l.Fixed != nil {
		all = append(all, shed.Fixed(*l.Fixed))
	}
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
