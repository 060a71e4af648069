package measure

import (
	"slices"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// transport holds the series of one outbound transport.
type transport struct {
	name      string
	attempts  [verdict.KindCount]Incrementer
	notSent   [pacer.ReasonCount]Incrementer
	gaveUp    map[outbound.Stop]Incrementer
	slowdowns Incrementer
	retries   Incrementer
	took      Recorder
}

func newTransport(to Instruments, name string) *transport {
	t := &transport{
		name:      name,
		gaveUp:    map[outbound.Stop]Incrementer{},
		slowdowns: to.Counter(Slowdowns, name),
		retries:   to.Counter(Retries, name),
		took:      to.Histogram(AttemptSeconds, name),
	}
	for k := range t.attempts {
		t.attempts[k] = to.Counter(Attempts, name, verdict.Kind(k).String())
	}
	for w := range t.notSent {
		t.notSent[w] = to.Counter(NotSent, name, pacer.Reason(w).String())
	}
	for _, stop := range outbound.Stops() {
		t.gaveUp[stop] = to.Counter(GaveUp, name, string(stop))
	}
	return t
}

func (t *transport) count(e *outbound.Event) {
	switch e.Type {
	case outbound.EventAnswered:
		t.attempts[int(e.Kind)%verdict.KindCount].Inc()
		t.took.Record(e.Took)
	case outbound.EventRefused:
		t.notSent[int(e.Reason)%pacer.ReasonCount].Inc()
	case outbound.EventSlowed:
		t.slowdowns.Inc()
	case outbound.EventRetried:
		t.retries.Inc()
	case outbound.EventStopped:
		if stop, known := t.gaveUp[e.Stop]; known {
			stop.Inc()
		}
	}
}

type outboundObserver struct{ *Observer }

// Observe counts what happened to one attempt.
func (o outboundObserver) Observe(e outbound.Event) { o.transport(e.Transport).count(&e) }

// Attach adds a transport. Its series begin at zero here.
func (o outboundObserver) Attach(name string, snapshot func() pacer.Stats) {
	o.mu.Lock()
	o.names = append(o.names, name)
	o.transports = append(o.transports, snapshot)
	o.mu.Unlock()
	o.transport(name)
}

func (o *Observer) transport(name string) *transport {
	for _, t := range *o.calls.Load() {
		if t.name == name {
			return t
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := *o.calls.Load()
	for _, t := range known {
		if t.name == name {
			return t
		}
	}
	t := newTransport(o.instruments, name)
	grown := append(slices.Clone(known), t)
	o.calls.Store(&grown)
	return t
}

var _ outbound.Observer = outboundObserver{}
