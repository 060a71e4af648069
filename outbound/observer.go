package outbound

import (
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
)

// Observer receives what happens, for metrics and logs. Observe is called from the
// goroutine that makes the call, with no lock held, many times at once; it must not
// block. Attach is called once, when a Transport is made, with the transport's name
// and a function that returns its Stats, so that gauges can read them.
type Observer interface {
	Observe(Event)
	Attach(name string, snapshot func() pacer.Stats)
}

// Event is one thing that happened. It holds nothing that came from the wire; Key
// is what the Transport's own Key function returned.
type Event struct {
	Transport  string // Options.Name
	Type       EventType
	Key        ratelimit.Key
	Kind       verdict.Kind  // EventAnswered, EventRetried, EventStopped: what the attempt came to
	Reason     pacer.Reason  // EventRefused: why
	Stop       Stop          // EventStopped: why there was no retry
	Attempt    int           // EventRetried, EventStopped: the number of the attempt that ended, from 1
	Took       time.Duration // EventAnswered: from asking for a turn to the answer's header
	Wait       time.Duration // EventRefused: the wait it would have been; EventRetried: the wait before the next; EventSlowed: what is left of the pause
	Rate       rate.Limit    // EventSlowed: the rate in force
	Multiplier float64       // EventSlowed: the share of the configured rate in force
}

// EventType says what happened.
type EventType uint8

// The types of events.
const (
	EventAnswered EventType = iota // an attempt ended, with an answer or without
	EventRefused                   // an attempt was not sent
	EventSlowed                    // the rate was cut or a pause began
	EventRetried                   // another attempt was decided upon
	EventStopped                   // a failed call is not retried, or not any more
)

const eventTypeCount = int(EventStopped) + 1

var eventTypeNames = [eventTypeCount]string{"answered", "refused", "slowed", "retried", "stopped"}

// String returns the type's name in metrics and logs.
func (t EventType) String() string {
	if int(t) >= eventTypeCount {
		return "unknown"
	}
	return eventTypeNames[t]
}

// watcher passes events to an observer, if there is one.
type watcher struct {
	observer  Observer
	transport string
}

func (w watcher) on() bool { return w.observer != nil }

func (w watcher) answered(key ratelimit.Key, v verdict.Verdict, took time.Duration) {
	w.observer.Observe(Event{Transport: w.transport, Type: EventAnswered, Key: key, Kind: v.Kind, Took: took})
}

func (w watcher) refused(key ratelimit.Key, err error) {
	var r *pacer.Refusal
	if w.observer != nil && errors.As(err, &r) {
		w.observer.Observe(Event{Transport: w.transport, Type: EventRefused, Key: key, Kind: verdict.LocalRefusal, Reason: r.Reason, Wait: r.Wait})
	}
}

func (w watcher) slowed(o *pacer.Operation, v verdict.Verdict, slower bool) {
	if !slower {
		return
	}
	s := o.Stats()
	w.observer.Observe(Event{
		Transport: w.transport, Type: EventSlowed, Key: s.Key, Kind: v.Kind,
		Wait: s.PauseLeft, Rate: s.Rate, Multiplier: s.Multiplier,
	})
}

func (w watcher) retried(key ratelimit.Key, v verdict.Verdict, attempt int, delay time.Duration) {
	if w.observer != nil {
		w.observer.Observe(Event{Transport: w.transport, Type: EventRetried, Key: key, Kind: v.Kind, Attempt: attempt, Wait: delay})
	}
}

func (w watcher) stopped(key ratelimit.Key, v verdict.Verdict, attempt int, s Stop) {
	if w.observer != nil {
		w.observer.Observe(Event{Transport: w.transport, Type: EventStopped, Key: key, Kind: v.Kind, Attempt: attempt, Stop: s})
	}
}
