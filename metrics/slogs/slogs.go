// Package slogs writes a line to the log when the state of a gate or of a transport
// changes: a limit was cut, a level is shed for the first time, a shared limit lost
// its store, the gate drains, the other side throttles. Each line carries the
// numbers in force, so that a log alone tells the story of a night:
//
//	gate := admission.MustNew(admission.Options{Observer: slogs.New(slog.Default(), slogs.Options{})})
//
// It is not an access log: what happens to single requests is for metrics to count.
package slogs

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound"
)

// Log is an [admission.Observer]. It compares what it sees with what it saw, at
// most once in every Options.Look, on the goroutine of whichever request ends then;
// all other requests pay for one atomic load. It starts no goroutine: a gate that
// nothing passes writes nothing.
type Log struct {
	logger *slog.Logger
	opts   Options

	gates      sync.Map // name to *gate
	transports sync.Map // name to *transport
}

// Options configure a Log. The zero value is ready to use.
type Options struct {
	// Look is the shortest time between two looks at a gate. Zero: 1 s.
	Look time.Duration
	// Every is the shortest time between two lines about the same thing; what
	// changed in between is told together. Zero: 10 s.
	Every time.Duration
}

// New returns a Log that writes to l; nil is slog.Default(). Negative options count
// as zero.
func New(l *slog.Logger, o Options) *Log {
	if l == nil {
		l = slog.Default()
	}
	if o.Look <= 0 {
		o.Look = time.Second
	}
	if o.Every <= 0 {
		o.Every = 10 * time.Second
	}
	return &Log{logger: l, opts: o}
}

// Attach adds a gate. One that is attached again takes the place of the first.
func (l *Log) Attach(name string, snapshot func() admission.Stats) {
	l.gates.Store(name, &gate{log: l, name: name, snapshot: snapshot, said: map[topic]time.Time{}})
}

// Observe looks at the gate if its time has come.
func (l *Log) Observe(e admission.Event) {
	if g, ok := l.gates.Load(e.Gate); ok {
		g.(*gate).look(time.Now())
	}
}

// Outbound returns the same for transports: give it to outbound.Options.Observer.
func (l *Log) Outbound() outbound.Observer { return outboundLog{l} }

// due lets one caller through each time an interval has passed.
type due struct{ next atomic.Int64 }

func (d *due) pass(now time.Time, every time.Duration) bool {
	next, n := d.next.Load(), now.UnixNano()
	return n >= next && d.next.CompareAndSwap(next, n+int64(every))
}

var _ admission.Observer = (*Log)(nil)
