package queue

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Config is everything a [Core] or [Slots] is told. It is plain values: the same
// Config may build any number of them.
type Config struct {
	// Limit is the law that finds the number of slots. Nil: shed.Throughput{}.
	Limit shed.Limit
	// MaxWait is the longest stay in the queue. Zero: 1 s, which a deadline may shorten. NoWait: nothing waits.
	// Other negatives are an error.
	MaxWait time.Duration
	// MaxWaiting is how many may wait. Zero: twice the limit in force, at
	// least 2048; what binds first is the predicted wait.
	// Negative: an error.
	MaxWaiting int
	// MaxWaitingBytes bounds the announced body bytes of all that waits. Zero: no bound.
	// Negative: an error. A body of unknown length (-1) counts 1 MiB, and one
	// request may bring an eighth of the bound at most.
	MaxWaitingBytes int64
	// CriticalReserve is how many slots only Critical may use. The others may always use at
	// least one, whatever the limit in force. Negative, or all that the law can ever
	// find: an error.
	CriticalReserve int
	// WaitingShare is how much of the bound each class, together with those below it, may
	// fill while a higher class waits; index with [priority.Level.Index].
	// All zero: 0.50, 0.70, 0.85, 1. Otherwise each must be in (0, 1].
	WaitingShare [priority.Count]float64
	// OnMove is told every move of the limit by [Slots], after the fact and without
	// any lock held, from whichever goroutine caused it. Nil: not told.
	OnMove func(shed.Step)
}

// DefaultMaxWait is the longest stay in the queue when Config does not say.
const DefaultMaxWait = time.Second

const (
	leastBound    = 2048
	unknownLength = 1 << 20 // bytes counted for a body that does not say
	bytesPart     = 8       // one request brings this part of the byte bound at most
)

var defaultShare = [priority.Count]float64{0.50, 0.70, 0.85, 1}

// settled returns c with its defaults filled in, or an error that names the field.
func (c Config) settled() (Config, error) {
	switch {
	case c.MaxWait < 0 && c.MaxWait != NoWait:
		return c, fmt.Errorf("queue: MaxWait = %v: must not be negative (NoWait = never wait)", c.MaxWait)
	case c.MaxWaiting < 0:
		return c, fmt.Errorf("queue: MaxWaiting = %d: must not be negative", c.MaxWaiting)
	case c.MaxWaitingBytes < 0:
		return c, fmt.Errorf("queue: MaxWaitingBytes = %d: must not be negative", c.MaxWaitingBytes)
	case c.CriticalReserve < 0:
		return c, fmt.Errorf("queue: CriticalReserve = %d: must not be negative", c.CriticalReserve)
	}
	if c.Limit == nil {
		c.Limit = shed.Throughput{}
	}
	if c.MaxWait == 0 {
		c.MaxWait = DefaultMaxWait
	}
	if c.WaitingShare == [priority.Count]float64{} {
		c.WaitingShare = defaultShare
	}
	for i, s := range c.WaitingShare {
		if math.IsNaN(s) || s <= 0 || s > 1 {
			return c, fmt.Errorf("queue: WaitingShare[%v] = %v: must be above 0 and at most 1", priority.All()[i], s)
		}
	}
	return c, nil
}

// checkReserve reports a reserve that law can never leave anything of.
func (c *Config) checkReserve(law shed.Law) error {
	if b, ok := law.(shed.Bounded); ok && c.CriticalReserve > 0 {
		if _, most := b.Bounds(); c.CriticalReserve >= most {
			return fmt.Errorf("queue: CriticalReserve = %d: must leave at least one of %d slots to the other levels", c.CriticalReserve, most)
		}
	}
	return nil
}

// bound returns how many may wait while the given limit is in force.
func (c *Config) bound(limit int) int {
	if c.MaxWaiting > 0 {
		return c.MaxWaiting
	}
	return max(2*min(limit, math.MaxInt/2), leastBound)
}

// others returns how many slots the levels below Critical may use together.
func (c *Config) others(limit int) int { return max(limit-c.CriticalReserve, 1) }

// slots returns how many slots a ticket takes of the given limit.
func (c *Config) slots(t *Ticket, limit int) int {
	if t.Level < priority.Critical {
		limit = c.others(limit)
	}
	return min(max(t.Slots, 1), max(limit, 1))
}

// stay returns the longest stay of a ticket; zero when it does not wait.
func (c *Config) stay(t *Ticket) time.Duration {
	switch {
	case t.MaxWait < 0:
		return 0
	case t.MaxWait == 0:
		return max(c.MaxWait, 0)
	default:
		return max(min(t.MaxWait, c.MaxWait), 0)
	}
}

// size returns the bytes a ticket counts for, and whether one request may bring
// that many.
func (c *Config) size(t *Ticket) (int64, bool) {
	if c.MaxWaitingBytes == 0 {
		return 0, true
	}
	n := t.Bytes
	if n < 0 {
		n = unknownLength
	}
	return n, n <= c.MaxWaitingBytes/bytesPart
}

// sameKind reports whether two limits are of the same type, sameLimit whether they
// are the same configuration. A type that cannot be compared never is.
func sameKind(a, b shed.Limit) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }

func sameLimit(a, b shed.Limit) bool {
	return sameKind(a, b) && reflect.ValueOf(a).Comparable() && a == b
}

// WorkConfig is everything a [Queue] is told.
type WorkConfig[T any] struct {
	// MaxWaiting is how much work may wait. Zero: 1024. Negative: an error.
	MaxWaiting int
	// DropOldest evicts the work that came first, whatever its class, when work arrives
	// at a full queue. Without it what the order would serve last goes, the newcomer
	// included, which is refused with QueueFull.
	DropOldest bool
	// MaxWait is the longest stay of work whose ticket names none or a longer one.
	// Zero: no limit. Negative: an error.
	MaxWait time.Duration
	// OnDrop is told of work that was accepted and will not be delivered: Evicted by
	// newer work, DeadlineUnmeetable or WaitedTooLong. It is called without any lock held,
	// by whichever Push, Pop or Close met it. Nil: not told; Dropped counts.
	OnDrop func(T, Ticket, shed.Reason)
}

const defaultWorkBound = 1024

// settled returns c with its default filled in, or an error that names the field.
func (c WorkConfig[T]) settled() (WorkConfig[T], error) {
	switch {
	case c.MaxWaiting < 0:
		return c, fmt.Errorf("queue: MaxWaiting = %d: must not be negative", c.MaxWaiting)
	case c.MaxWait < 0:
		return c, fmt.Errorf("queue: MaxWait = %v: must not be negative", c.MaxWait)
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = defaultWorkBound
	}
	return c, nil
}
