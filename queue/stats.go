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
	Waiting      [priority.Count]int   // waiters, by level
	WaitingBytes [priority.Count]int64 // what they announced; zero without a bound in bytes
	Oldest       time.Duration         // how long the oldest has waited

	Admitted [priority.Count]uint64                   // slots given, by level
	Waited   uint64                                   // of those, after a wait
	Waits    [waitBuckets]uint64                      // how long they had: below 1 ms, below twice as much in each further one, in the last without a bound
	Refused  [priority.Count][shed.ReasonCount]uint64 // the others, by level and reason

	SlotTime    [priority.Count]time.Duration // slots × time held of the work that has ended, by level
	Estimated   time.Duration                 // what part of it was charged with an estimate, after a wait
	EstimateOff time.Duration                 // and by how much the estimates were off, either way

	DrainRate float64       // slots coming free per second while all are taken; zero: not known
	Service   time.Duration // median time a slot is held; zero: not known

	Cause shed.Cause              // why the limit last moved
	Moves [shed.CauseCount]uint64 // how often it moved, by cause
}

// tally counts what a core has decided.
type tally struct {
	admitted [priority.Count]uint64
	waited   uint64
	waits    [waitBuckets]uint64
	refused  [priority.Count][shed.ReasonCount]uint64
	cause    shed.Cause // why the limit last moved
	moves    [shed.CauseCount]uint64

	slotTime       [priority.Count]time.Duration
	estimated, off time.Duration
}

// ended counts the slot time of work that has ended, and how far off its estimate was.
func (t *tally) ended(r *row, p *piece, at time.Duration) {
	took := time.Duration(r.slots) * (at - r.at)
	t.slotTime[r.level.Index()] += took
	if p != nil {
		t.estimated += took
		t.off += (took - p.work()).Abs()
	}
}

// served counts a slot that went to a waiter.
func (t *tally) served(waited time.Duration) {
	t.waited++
	t.waits[waitBucket(waited)]++
}

// moved counts a move of the limit.
func (t *tally) moved(cause shed.Cause) {
	t.cause = cause
	t.moves[min(int(cause), len(t.moves)-1)]++
}

// revoked turns an admission into a refusal.
func (t *tally) revoked(l priority.Level, r shed.Reason) {
	t.admitted[l.Index()]--
	t.refused[l.Index()][r]++
}

// waiting fills in what waits.
func (s *Stats) waiting(l *line) {
	for i := range s.Waiting {
		s.Waiting[i] = l.classes[i].n
		s.WaitingBytes[i] = l.classes[i].bytes
	}
}

const waitBuckets = 14

// waitBucket returns the place of a wait in Stats.Waits.
func waitBucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(d, 0)/time.Millisecond)), waitBuckets-1)
}
