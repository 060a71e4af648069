package outbound

import (
	"context"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/shed"
)

// InFlight is a RoundTripper that bounds the calls in flight through it: a call
// holds a slot from before it is sent until its answer's body is read to the end or
// closed. Who finds no slot waits, by the level in the request's context, within
// the bounds of the queue; a refusal is a [*Refusal] with NoSlot around the
// [shed.Reason].
//
// It is for use alone. A [Transport] bounds calls per service and couples the slot
// with the token, which two RoundTrippers one around the other cannot.
type InFlight struct {
	slots *queue.Slots
	next  http.RoundTripper
}

// NewInFlight validates c and builds the cap around next; nil means
// http.DefaultTransport. Errors name the field.
func NewInFlight(next http.RoundTripper, c queue.Config) (*InFlight, error) {
	slots, err := queue.NewSlots(c)
	if err != nil {
		return nil, err
	}
	return &InFlight{slots: slots, next: orDefault(next)}, nil
}

// RoundTrip sends req when there is a slot.
func (f *InFlight) RoundTrip(req *http.Request) (*http.Response, error) {
	grant, err := acquire(req.Context(), f.slots, 0)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	s := &slot{slots: f.slots, grant: grant}
	s.body.held = s
	resp, err := f.next.RoundTrip(req)
	if err != nil {
		s.outcome = outcomeOf(classifyError(err))
		s.body.finish()
		return nil, err
	}
	s.outcome = outcomeOf(Classify(resp, nil))
	hold(resp, &s.body)
	return resp, nil
}

// Stats returns what the slots look like now.
func (f *InFlight) Stats() queue.Stats { return f.slots.Stats() }

// slot is one call's slot together with the body that holds it: one object.
type slot struct {
	body    heldBody
	slots   *queue.Slots
	grant   queue.Grant
	outcome shed.Outcome
}

func (s *slot) end() { s.slots.Release(s.grant, s.outcome) }

// acquire takes a slot, waiting for one if need be.
func acquire(ctx context.Context, slots *queue.Slots, longest time.Duration) (queue.Grant, error) {
	grant, err := slots.Acquire(ctx, time.Now(), ticketOf(ctx, longest))
	switch {
	case err == nil:
		return grant, nil
	case ctx.Err() != nil:
		return queue.Grant{}, context.Cause(ctx)
	}
	return queue.Grant{}, &Refusal{Why: NoSlot, Err: err}
}

func ticketOf(ctx context.Context, longest time.Duration) queue.Ticket {
	level, _ := priority.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	return queue.Ticket{Level: level, Deadline: deadline, MaxWait: longest}
}

// outcomeOf says what an attempt's end tells about the capacity behind it.
func outcomeOf(v Verdict) shed.Outcome {
	switch v.Kind {
	case OK, Conflict, Permanent:
		return shed.Served
	case Transient:
		return shed.Failed
	case Overloaded:
		return shed.TimedOut
	}
	return shed.Ignored
}

func orDefault(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		return http.DefaultTransport
	}
	return next
}
