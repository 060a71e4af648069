package outbound

import (
	"errors"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/ratelimit"
)

// Observer is told what happens, for metrics and logs. Observe is called from the
// goroutine that makes the call, with no lock held, many times at once; it must not
// block. Attach is called once, when a Transport is made, with the transport's name
// and a function that returns its Stats, so that gauges can read them.
type Observer interface {
	Observe(Event)
	Attach(name string, snapshot func() Stats)
}

// Event is one thing that happened. It holds nothing that came from the wire; Key
// is what the Transport's own Key function returned.
type Event struct {
	Transport  string // Options.Name
	Type       EventType
	Key        ratelimit.Key
	Kind       Kind          // Answered, Retried, Stopped: what the attempt came to
	Why        Why           // Refused: why
	Stop       Stop          // Stopped: why there was no retry
	Attempt    int           // Retried, Stopped: the number of the attempt that ended, from 1
	Took       time.Duration // Answered: from asking for a turn to the answer's header
	Wait       time.Duration // Refused: the wait it would have been; Retried: the wait before the next; Slowed: what is left of the pause
	Rate       rate.Limit    // Slowed: the rate in force
	Multiplier float64       // Slowed: the share of the configured rate in force
}

// EventType says what happened.
type EventType uint8

// The types of events.
const (
	Answered EventType = iota // an attempt ended, with an answer or without
	Refused                   // an attempt was not sent
	Slowed                    // the rate was cut or a pause began
	Retried                   // another attempt was decided upon
	Stopped                   // a failed call is not retried, or not any more
)

// EventTypeCount is the number of types, for arrays indexed by EventType.
const EventTypeCount = int(Stopped) + 1

var eventTypeNames = [EventTypeCount]string{"answered", "refused", "slowed", "retried", "stopped"}

// String returns the type's name in metrics and logs.
func (t EventType) String() string {
	if int(t) >= EventTypeCount {
		return "unknown"
	}
	return eventTypeNames[t]
}

// watcher tells an observer, if there is one.
type watcher struct {
	observer  Observer
	transport string
}

func (w watcher) on() bool { return w.observer != nil }

func (w watcher) answered(key ratelimit.Key, v Verdict, took time.Duration) {
	w.observer.Observe(Event{Transport: w.transport, Type: Answered, Key: key, Kind: v.Kind, Took: took})
}

func (w watcher) refused(key ratelimit.Key, err error) {
	var r *Refusal
	if w.observer != nil && errors.As(err, &r) {
		w.observer.Observe(Event{Transport: w.transport, Type: Refused, Key: key, Kind: LocalRefusal, Why: r.Why, Wait: r.Wait})
	}
}

func (w watcher) slowed(o *operation, v Verdict, cut, paused bool) {
	if !cut && !paused {
		return
	}
	s := o.stats(time.Now())
	w.observer.Observe(Event{
		Transport: w.transport, Type: Slowed, Key: o.key, Kind: v.Kind,
		Wait: s.PauseLeft, Rate: s.Rate, Multiplier: s.Multiplier,
	})
}

func (w watcher) retried(key ratelimit.Key, v Verdict, attempt int, delay time.Duration) {
	if w.observer != nil {
		w.observer.Observe(Event{Transport: w.transport, Type: Retried, Key: key, Kind: v.Kind, Attempt: attempt, Wait: delay})
	}
}

func (w watcher) stopped(key ratelimit.Key, v Verdict, attempt int, s Stop) {
	if w.observer != nil {
		w.observer.Observe(Event{Transport: w.transport, Type: Stopped, Key: key, Kind: v.Kind, Attempt: attempt, Stop: s})
	}
}
