package shed

import (
	"fmt"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// Limit is the configuration of a law: how the number of slots is found. It is a
// plain value without state, so that one Limit may build any number of laws.
type Limit interface {
	// New validates the configuration and builds a law from it. Errors name the
	// field.
	New() (Law, error)
}

// Law finds how much work may be in flight. It is fed every change of load and
// every completion, with the time passed in, and it is not safe for concurrent
// use: the holder of the load holds the lock.
//
// The number in force is never below the law's minimum (at least 1), never above
// its maximum, and moves on evidence only.
type Law interface {
	// Limit returns the slots in force.
	Limit() int
	// Note tells that the load is as given from now on: after an admission, an
	// arrival in the queue, a departure from it. The step it returns is the zero
	// Step when nothing moved.
	Note(now time.Time, load Load) Step
	// Done tells that one piece of work ended, with the load from now on.
	Done(now time.Time, load Load, s Sample) Step
}

// Bounded is implemented by laws that stay within two numbers: at the lower one
// nothing is left to give.
type Bounded interface {
	Bounds() (least, most int)
}

// Load is what a law can see of the work at one instant.
type Load struct {
	InFlight int // work that holds a slot
	Waiting  int // work that waits for one
}

// Sample is one finished piece of work.
type Sample struct {
	Admitted time.Time // when it got its slot
	Deadline time.Time // when its answer becomes worthless; zero: never
	Outcome  Outcome
}

// Step is one move of a law: the number in force after it and why it moved.
type Step struct {
	Limit int
	Cause Cause
}

// Moved reports whether the step changed anything.
func (s Step) Moved() bool { return s.Cause != CauseNone }

// Outcome says what a finished piece of work tells about capacity.
type Outcome uint8

const (
	// Served work was done properly: it is throughput.
	Served Outcome = iota
	// Failed work ended in an error of the service itself. A fast failure is not
	// throughput, and a law must not read it as speed.
	Failed
	// TimedOut work missed its deadline or was dropped downstream: evidence of
	// overload.
	TimedOut
	// Ignored work was not waited for: its client left. It is no throughput, but an
	// end all the same. When it outlasted the latency that a law knows, it is evidence
	// of overload.
	Ignored
	// Unmeasured work ended in a way that says nothing about capacity, however long it
	// took: the caller's mistake, a connection taken over.
	Unmeasured
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Served:
		return "served"
	case Failed:
		return "failed"
	case TimedOut:
		return "timed-out"
	case Unmeasured:
		return "unmeasured"
	default:
		return "ignored"
	}
}

// Gauge is a second opinion beside a limit: it says which levels are turned away
// because something else than slots runs short. Package shed/pressure has one. It is
// safe for concurrent use and must not block.
type Gauge interface {
	// Sheds reports whether work of this level and caller is to be turned away.
	Sheds(now time.Time, l priority.Level, caller string) bool
	// Lowest returns the lowest level that is still let in, at least in part.
	Lowest(now time.Time) priority.Level
}

// Cause is why a law moved its limit. The list is closed, for metrics and logs.
type Cause uint8

// The causes. Not every law knows every cause.
const (
	CauseNone      Cause = iota
	CauseStart           // the initial number
	CauseGrow            // more concurrency bought more throughput, or latency is low
	CauseSaturated       // more concurrency bought nothing: something queues below
	CauseThrash          // more concurrency cost throughput
	CauseLatency         // work in flight could not finish in its budget (Little's law)
	CauseUndo            // a cut cost throughput: concurrency was not the cause
	CauseStalled         // nothing ended for far longer than it should have taken
	CauseErrors          // timeouts, drops, or clients that left
)

// CauseCount is the number of causes, for arrays indexed by Cause.
const CauseCount = int(CauseErrors) + 1

var causeNames = [CauseCount]string{
	"none", "start", "grow", "saturated", "thrash", "latency", "undo", "stalled", "errors",
}

// String returns the cause's name in metrics and logs.
func (c Cause) String() string {
	if int(c) >= CauseCount {
		return "unknown"
	}
	return causeNames[c]
}

// Fixed is a limit that never moves, for capacity that is really known: a
// pool of N connections, a quota of N calls. Below 1 is an error from New.
type Fixed int

// New builds the law.
func (f Fixed) New() (Law, error) {
	if f < 1 {
		return nil, fmt.Errorf("shed: Fixed = %d: must be at least 1", int(f))
	}
	return fixed(f), nil
}

type fixed int

func (f fixed) Limit() int                        { return int(f) }
func (f fixed) Bounds() (least, most int)         { return int(f), int(f) }
func (f fixed) Note(time.Time, Load) Step         { return Step{} }
func (f fixed) Done(time.Time, Load, Sample) Step { return Step{} }

// bounds are the numbers every adaptive law stays within.
type bounds struct{ min, max, initial int }

func newBounds(law string, minimum, maximum, initial int) (bounds, error) {
	b := bounds{minimum, maximum, initial}
	for _, f := range [...]struct {
		name  string
		value int
	}{{"Min", b.min}, {"Max", b.max}, {"Initial", b.initial}} {
		if f.value < 0 {
			return b, fmt.Errorf("shed: %s.%s = %d: must not be negative", law, f.name, f.value)
		}
	}
	if b.min == 0 {
		b.min = 1
	}
	if b.max == 0 {
		b.max = max(defaultMax, b.min)
	}
	if b.max < b.min {
		return b, fmt.Errorf("shed: %s.Max = %d: must be at least Min = %d", law, b.max, b.min)
	}
	if b.initial == 0 {
		b.initial = b.clamp(defaultInitial)
	}
	if b.initial != b.clamp(b.initial) {
		return b, fmt.Errorf("shed: %s.Initial = %d: must be within Min = %d and Max = %d", law, b.initial, b.min, b.max)
	}
	return b, nil
}

// Bounds returns the numbers the limit stays within.
func (b bounds) Bounds() (least, most int) { return b.min, b.max }

func (b bounds) clamp(limit int) int { return min(max(limit, b.min), b.max) }
