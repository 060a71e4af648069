package outbound

import (
	"errors"
	"fmt"
	"time"
)

// ErrLocal matches, through errors.Is, every refusal made on this side: the call
// was not sent, and the server knows nothing of it.
var ErrLocal = errors.New("outbound: not sent")

// Refusal says that a call was not sent. It is never the server's doing and says
// nothing about the thing the call was about.
type Refusal struct {
	Why  Why
	Wait time.Duration // how long it would have had to wait; zero when waiting is not the point
	Err  error         // what stood in the way, if that has an error of its own
}

// Error describes the refusal.
func (r *Refusal) Error() string {
	s := "outbound: not sent: " + r.Why.String()
	if r.Wait > 0 {
		s += fmt.Sprintf(" (wait %v)", r.Wait.Round(time.Millisecond))
	}
	if r.Err != nil {
		s += ": " + r.Err.Error()
	}
	return s
}

// Unwrap returns the error behind the refusal, or nil.
func (r *Refusal) Unwrap() error { return r.Err }

// Is reports whether target is [ErrLocal].
func (r *Refusal) Is(target error) bool { return target == ErrLocal }

// Why is the reason of a Refusal. The list is closed, for metrics and logs.
type Why uint8

// The reasons.
const (
	WaitTooLong   Why = iota // its turn would come after its deadline or after the longest wait
	Paused                   // the server asked everybody to stay away, for longer than this call can wait
	NeverFits                // no waiting helps: the rate is zero or the cost above the burst
	NoSlot                   // the cap on calls in flight, or the queue for it, is full
	BreakerOpen              // the circuit breaker did not let it through
	AttemptsSpent            // the job's budget of attempts is used up
	StoreAway                // the shared ceiling's store is away and its policy is closed
)

// WhyCount is the number of reasons, for arrays indexed by Why.
const WhyCount = int(StoreAway) + 1

var whyNames = [WhyCount]string{
	"wait-too-long", "paused", "never-fits", "no-slot", "breaker-open", "attempts-spent", "store-away",
}

// String returns the reason's name in metrics and logs.
func (w Why) String() string {
	if int(w) >= WhyCount {
		return "unknown"
	}
	return whyNames[w]
}
