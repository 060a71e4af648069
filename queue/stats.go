package queue

import (
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Stats is what a [Core] or [Slots] looks like at one instant. Counters only grow.
type Stats struct {
	Limit        int                 // slots in force
	InFlight     int                 // slots taken
	Bound        int                 // how many may wait
	Waiting      [priority.Count]int // who waits, by level
	WaitingBytes int64               // what they announced; zero without a bound in bytes
	Oldest       time.Duration       // how long the oldest has waited

	Admitted [priority.Count]uint64                   // slots given, by level
	Waited   uint64                                   // of those, to somebody who had waited
	Refused  [priority.Count][shed.ReasonCount]uint64 // the others, by level and reason

	DrainRate float64       // slots coming free per second while all are taken; zero: not known
	Service   time.Duration // median time a slot is held; zero: not known

	Cause shed.Cause              // why the limit last moved
	Moves [shed.CauseCount]uint64 // how often it moved, by cause
}

// Stats returns what the core looks like at now.
func (c *Core) Stats(now time.Time) Stats {
	s := Stats{
		Limit: c.limit, InFlight: c.table.n, Bound: c.config.bound(c.limit), WaitingBytes: c.line.bytes,
		Admitted: c.admitted, Waited: c.waited, Refused: c.refused,
		Service: c.meter.Median(), Cause: c.cause, Moves: c.moves,
	}
	for i := range s.Waiting {
		s.Waiting[i] = c.line.classes[i].n
	}
	s.DrainRate, _ = c.meter.Rate(now, c.silence(now))
	if w := c.line.all.oldest; w != nil {
		s.Oldest = max(c.at(now)-w.joined, 0)
	}
	return s
}
