package measure

import (
	"slices"

	"github.com/headgate-go/headgate/outbound"
)

// transport holds the series of one outbound transport.
type transport struct {
	name      string
	attempts  [outbound.KindCount]Incrementer
	notSent   [outbound.WhyCount]Incrementer
	gaveUp    [outbound.StopCount]Incrementer
	slowdowns Incrementer
	retries   Incrementer
	took      Recorder
}

func newTransport(to Instruments, name string) *transport {
	t := &transport{
		name:      name,
		slowdowns: to.Counter(Slowdowns, name),
		retries:   to.Counter(Retries, name),
		took:      to.Histogram(AttemptSeconds, name),
	}
	for k := range t.attempts {
		t.attempts[k] = to.Counter(Attempts, name, outbound.Kind(k).String())
	}
	for w := range t.notSent {
		t.notSent[w] = to.Counter(NotSent, name, outbound.Why(w).String())
	}
	for s := range t.gaveUp {
		if outbound.Stop(s) != outbound.Retrying {
			t.gaveUp[s] = to.Counter(GaveUp, name, outbound.Stop(s).String())
		}
	}
	return t
}

func (t *transport) count(e *outbound.Event) {
	switch e.Type {
	case outbound.Answered:
		t.attempts[int(e.Kind)%outbound.KindCount].Inc()
		t.took.Record(e.Took)
	case outbound.Refused:
		t.notSent[int(e.Why)%outbound.WhyCount].Inc()
	case outbound.Slowed:
		t.slowdowns.Inc()
	case outbound.Retried:
		t.retries.Inc()
	case outbound.Stopped:
		if stop := t.gaveUp[int(e.Stop)%outbound.StopCount]; stop != nil {
			stop.Inc()
		}
	}
}

type outboundObserver struct{ *Observer }

// Observe counts what happened to one attempt.
func (o outboundObserver) Observe(e outbound.Event) { o.transport(e.Transport).count(&e) }

// Attach adds a transport. Its series begin at zero here.
func (o outboundObserver) Attach(name string, snapshot func() outbound.Stats) {
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
