package pacer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
)

// Stats are the numbers in force and the totals since the start.
type Stats struct {
	Operations []OperationStats // sorted by key
	Services   []ServiceStats   // sorted by name
}

// OperationStats are one operation's.
type OperationStats struct {
	Key ratelimit.Key

	// In force now.
	Rate       rate.Limit    // calls per second; rate.Inf when nothing limits them
	Configured rate.Limit    // what the limiter would allow
	Burst      int           // of the limiter
	Multiplier float64       // the law's: 1 when it rests
	PauseLeft  time.Duration // how long calls stay away yet; those of a high level may go earlier
	Waiting    int           // calls in line
	InFlight   int           // attempts whose answer is not done with
	RetryLeft  float64       // retries the budget allows now

	// Totals.
	Attempts uint64                    // sent, retries and resends included
	Retries  uint64                    // of them decided here
	Resends  uint64                    // of them made by net/http
	Cuts     uint64                    // times the rate was cut
	Pauses   uint64                    // times a pause began or was prolonged
	Ended    [verdict.KindCount]uint64 // attempts by what they came to
	Refused  [ReasonCount]uint64       // attempts not sent, by reason
}

// ServiceStats are what the operations of one service share.
type ServiceStats struct {
	Name      string
	PauseLeft time.Duration
	Slots     queue.Stats // zero when calls in flight are not bounded
}

// Stats returns a snapshot. It locks one operation at a time; its cost is linear in
// the number of operations.
func (p *Pacer) Stats() Stats {
	now := time.Now()
	ops, services := p.snapshot()
	var s Stats
	for _, o := range ops {
		s.Operations = append(s.Operations, statsOf(o, now))
	}
	for name, svc := range services {
		one := ServiceStats{Name: name, PauseLeft: max(0, svc.pauseLeft(now, lowest))}
		if svc.slots != nil {
			one.Slots = svc.slots.Stats()
		}
		s.Services = append(s.Services, one)
	}
	slices.SortFunc(s.Operations, func(a, b OperationStats) int { return compareKeys(a.Key, b.Key) })
	slices.SortFunc(s.Services, func(a, b ServiceStats) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func compareKeys(a, b ratelimit.Key) int {
	if c := strings.Compare(a.Space, b.Space); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

func (p *Pacer) snapshot() ([]*Operation, map[string]*service) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	ops := make([]*Operation, 0, len(p.ops)+1)
	for _, o := range p.ops {
		ops = append(ops, o)
	}
	services := make(map[string]*service, len(p.services)+1)
	for name, svc := range p.services {
		services[name] = svc
	}
	if len(p.ops) >= p.opts.MaxOperations {
		ops = append(ops, p.overflow)
		services[p.overflow.key.Space] = p.overflow.svc
	}
	return ops, services
}

// statsOf reads one operation. It calls the limiter, so the lock is not held.
func statsOf(o *Operation, now time.Time) OperationStats {
	p := o.limiter.Policy(o.key)
	s := OperationStats{Key: o.key, Rate: p.Rate, Configured: p.Rate, Burst: p.Burst, RetryLeft: o.retries.left(now)}
	o.mu.Lock()
	if o.law.active(now) {
		s.Rate = rate.Limit(o.rateInForce(now, p))
	}
	s.Multiplier = o.law.inForce(now)
	s.PauseLeft = o.pauseLeft(now, lowest)
	s.Waiting = o.line.n
	o.mu.Unlock()
	c := &o.counts
	s.InFlight = int(c.inFlight.Load())
	s.Attempts, s.Retries, s.Resends = c.attempts.Load(), c.retries.Load(), c.resends.Load()
	s.Cuts, s.Pauses = c.cuts.Load(), c.pauses.Load()
	for i := range s.Ended {
		s.Ended[i] = c.kinds[i].Load()
	}
	for i := range s.Refused {
		s.Refused[i] = c.refused[i].Load()
	}
	return s
}

// Refusal says that a call was not sent. It is never the server's doing and says
// nothing about the thing that the call was about. It is a [verdict.ErrLocal].
type Refusal struct {
	Reason Reason
	Wait   time.Duration // how long it would have had to wait; zero when waiting is not the point
	Err    error         // what stood in the way, if that has an error of its own
}

// Error describes the refusal.
func (r *Refusal) Error() string {
	s := "outbound: not sent: " + r.Reason.String()
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

// Is reports whether target is [verdict.ErrLocal].
func (r *Refusal) Is(target error) bool { return target == verdict.ErrLocal }

// Reason is why a call was not sent. The list is closed, for metrics and logs.
type Reason uint8

// The reasons.
const (
	WaitTooLong        Reason = iota // its turn would come after its deadline or after the longest wait
	Paused                           // the server asked all calls to stay away, for longer than this call can wait
	NotAdmissible                    // no waiting helps: the rate is zero or the cost above the burst
	NoSlot                           // the cap on calls in flight, or the queue for it, is full
	BreakerOpen                      // the circuit breaker did not let it through
	AttemptsSpent                    // the job's budget of attempts is used up
	LimiterUnavailable               // the shared ceiling's store is away and its policy is closed
)

// ReasonCount is the number of reasons, for arrays indexed by Reason.
const ReasonCount = int(LimiterUnavailable) + 1

var reasonNames = [ReasonCount]string{
	"wait-too-long", "paused", "not-admissible", "no-slot", "breaker-open", "attempts-spent", "limiter-unavailable",
}

// String returns the reason's name in metrics and logs.
func (r Reason) String() string {
	if int(r) >= ReasonCount {
		return "unknown"
	}
	return reasonNames[r]
}
