package queue

import (
	"math/bits"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Stats is what a [Core] or [Slots] looks like at one instant. Counters only grow.
type Stats struct {
	Limit        int                   // slots in force
	Least, Most  int                   // what the limit stays within; zero: the law does not say
	InFlight     int                   // slots taken
	Bound        int                   // how many may wait
	Waiting      [priority.Count]int   // who waits, by level
	WaitingBytes [priority.Count]int64 // what they announced; zero without a bound in bytes
	Oldest       time.Duration         // how long the oldest has waited

	Admitted [priority.Count]uint64                   // slots given, by level
	Waited   uint64                                   // of those, to somebody who had waited
	Waits    [WaitBuckets]uint64                      // how long they had; index with WaitBound
	Refused  [priority.Count][shed.ReasonCount]uint64 // the others, by level and reason

	DrainRate float64       // slots coming free per second while all are taken; zero: not known
	Service   time.Duration // median time a slot is held; zero: not known

	Cause shed.Cause              // why the limit last moved
	Moves [shed.CauseCount]uint64 // how often it moved, by cause
}

// Stats returns what the core looks like at now.
func (c *Core) Stats(now time.Time) Stats {
	s := Stats{
		Limit: c.limit, InFlight: c.table.n, Bound: c.config.bound(c.limit),
		Admitted: c.admitted, Waited: c.waited, Waits: c.waits, Refused: c.refused,
		Service: c.meter.Median(), Cause: c.cause, Moves: c.moves,
	}
	for i := range s.Waiting {
		s.Waiting[i] = c.line.classes[i].n
		s.WaitingBytes[i] = c.line.classes[i].bytes
	}
	if law, ok := c.law.(shed.Bounded); ok {
		s.Least, s.Most = law.Bounds()
	}
	s.DrainRate, _ = c.meter.Rate(now, c.silence(now))
	if w := c.line.all.oldest; w != nil {
		s.Oldest = max(c.at(now)-w.joined, 0)
	}
	return s
}

// WaitBuckets is the number of buckets of Stats.Waits.
const WaitBuckets = 14

// WaitBound returns what the waits in bucket i stay below: 1 ms for the first, twice
// as much for each further one. The last bucket has no bound; WaitBound returns
// [shed.Forever] for it.
func WaitBound(i int) time.Duration {
	if i >= WaitBuckets-1 {
		return shed.Forever
	}
	return time.Millisecond << i
}

func waitBucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(d, 0)/time.Millisecond)), WaitBuckets-1)
}
