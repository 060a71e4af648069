package admission

import (
	"context"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Observer is told of everything a gate decides. Its methods are called on the
// request's goroutine, under no lock, and must be quick and safe for concurrent
// use.
type Observer interface {
	// Observe is told of one visit, once, when it has ended: at the refusal, or
	// when the handler has returned.
	Observe(Event)
	// Attach is called once per gate, at set-up, with a way to read its gauges at
	// any time.
	Attach(gate string, snapshot func() Stats)
}

// Event is how one visit ended. It carries no text from the wire.
type Event struct {
	Gate       string
	Pool       string
	Route      string // the pattern of its route, from the router or Options.Routes; empty: none is known
	Caller     string // the alias that the service gave the caller; empty: none
	Level      priority.Level
	Reason     shed.Reason      // Admitted, Exempt, or why not
	Shadow     shed.Reason      // what would have refused it, were it not in shadow mode; else Admitted
	Source     ratelimit.Source // what the rate decision was based on
	Outcome    shed.Outcome     // of admitted work
	Streamed   bool             // admitted work that left its slot as a stream
	Waited     time.Duration    // in the queue; zero: not at all
	Served     time.Duration    // from admission to the end of the handler
	RetryAfter time.Duration    // handed out with a refusal
}

// Observers tells several observers, each of them once, however often it is named.
// Nils are left out.
func Observers(all ...Observer) Observer {
	some := new(observers)
	for _, o := range all {
		some.add(o)
	}
	return some
}

type observers []Observer

func (os *observers) add(o Observer) {
	if nested, ok := o.(*observers); ok {
		for _, o := range *nested {
			os.add(o)
		}
		return
	}
	if o == nil || reflect.TypeOf(o).Comparable() && slices.Contains(os.comparable(), o) {
		return
	}
	*os = append(*os, o)
}

// comparable returns those that == does not panic on.
func (os *observers) comparable() (some []Observer) {
	for _, o := range *os {
		if reflect.TypeOf(o).Comparable() {
			some = append(some, o)
		}
	}
	return some
}

func (os *observers) Observe(e Event) { tellAll(*os, e) }

// tellAll tells each, also those after one that panics.
func tellAll(os observers, e Event) {
	if len(os) == 0 {
		return
	}
	defer tellAll(os[1:], e)
	os[0].Observe(e)
}

func (os *observers) Attach(gate string, snapshot func() Stats) {
	for _, o := range *os {
		o.Attach(gate, snapshot)
	}
}

// Visitor is what the gate knows of an admitted request.
type Visitor struct {
	Caller   caller.Caller
	Level    priority.Level
	Deadline time.Time     // zero: none
	Waited   time.Duration // in the queue
}

// FromContext returns what the innermost gate knows of the request that ctx belongs to.
// It reports false outside of an admitted request.
func FromContext(ctx context.Context) (Visitor, bool) {
	r, _ := ctx.Value(anyRequestKey{}).(*work)
	if r == nil {
		return Visitor{}, false
	}
	at, _ := r.Deadline()
	return Visitor{Caller: r.caller, Level: r.level, Deadline: at, Waited: r.waited}, true
}

// sold is what a caller's plan says besides its rate, as the visit applies it.
type sold struct {
	factor int     // of the cost; below 1 counts as 1
	share  float64 // of the pool's slots; 0: no cap
	weight int     // beside other callers of the level; below 1 counts as 1
}

// price is what work of the given cost takes, at most what a limit can count.
func (s sold) price(cost int) int {
	if s.factor > 1 && cost > math.MaxInt/s.factor {
		return math.MaxInt
	}
	return cost * max(s.factor, 1)
}

// slots is the plan's part of a limit, rounded up, at least 1; zero: no cap.
func (s sold) slots(limit int) int {
	if s.share <= 0 {
		return 0
	}
	// Rounding of the product must not push a whole number to the next.
	return max(1, int(math.Ceil(s.share*float64(limit)*(1-1e-12))))
}
