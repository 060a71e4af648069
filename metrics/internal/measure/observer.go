package measure

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/ratelimit"
)

// Instruments are what a metrics library offers. Calls for the same family and
// labels return the same instrument.
type Instruments interface {
	// Counter returns the series of f with these label values.
	Counter(f *Family, labels ...string) Incrementer
	// Histogram does the same for a family of durations.
	Histogram(f *Family, labels ...string) Recorder
}

// Incrementer is one series of a Counter.
type Incrementer interface{ Inc() }

// Recorder is one series of a Histogram, of durations.
type Recorder interface{ Record(time.Duration) }

// Observer counts what gates and transports tell, and keeps what is to be read. It
// is an [admission.Observer]. All methods are safe for concurrent use.
//
// Gates of the same name are shown as one: their figures are summed. The same gate
// attached twice counts once.
type Observer struct {
	instruments Instruments
	visits      atomic.Pointer[[]*visits]    // replaced, never changed
	calls       atomic.Pointer[[]*transport] // likewise
	callers     atomic.Bool                  // shown

	mu         sync.Mutex // guards what follows, and the replacing
	gates      []func() admission.Stats
	transports []func() pacer.Stats // by the index of their name
	names      []string
	queues     []namedQueue
	stores     []ratelimit.Stored
}

// New returns an Observer that counts with the given instruments.
func New(i Instruments) *Observer {
	o := &Observer{instruments: i}
	o.visits.Store(new([]*visits))
	o.calls.Store(new([]*transport))
	return o
}

// Attach adds a gate. Its series begin at zero here, so that the first refusal is
// an increase. It does not call snapshot.
func (o *Observer) Attach(gate string, snapshot func() admission.Stats) {
	o.mu.Lock()
	o.gates = append(o.gates, snapshot)
	o.mu.Unlock()
	o.visitsOf(gate, "")
}

// Observe counts one visit.
func (o *Observer) Observe(e admission.Event) { o.visitsOf(e.Gate, e.Pool).count(&e) }

// visitsOf returns the counts of a gate's pool. There are few, so that looking
// through them is cheaper than hashing two strings.
func (o *Observer) visitsOf(gate, pool string) *visits {
	for _, v := range *o.visits.Load() {
		if v.gate == gate && v.pool == pool {
			return v
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := *o.visits.Load()
	for _, v := range known {
		if v.gate == gate && v.pool == pool {
			return v
		}
	}
	v := newVisits(o.instruments, gate, pool)
	grown := append(slices.Clone(known), v)
	o.visits.Store(&grown)
	return v
}

// Outbound returns the same for transports: give it to outbound.Options.Observer.
func (o *Observer) Outbound() outbound.Observer { return outboundObserver{o} }

var _ admission.Observer = (*Observer)(nil)
