package admission

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/internal/answer"
	"github.com/headgate-go/headgate/admission/internal/writer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// request is all the gate keeps of one request that it admits and runs, in one
// allocation: its context, its ResponseWriter, and what stays true of it after its end.
// It is the context the handler sees.
type request struct {
	work
	writer.Response
	inner http.Request // what the handler gets: a copy in this same allocation
}

// work is an admitted request as a context, and all of it that needs no ResponseWriter.
type work struct {
	context.Context // the request's own
	gate            *Gate
	caller          caller.Caller
	waited          time.Duration
	deadline        time.Time // zero: none beyond the request's own

	mu    sync.Mutex
	visit *visit // nil: over
	timer *timer // made by the first Done; nil: not yet

	charged   bool // under mu, as the two above; the small fields stand together to share a word
	streaming bool // left its slot
	level     priority.Level
	told      answer.Fields // what the client is told about its limit
}

// timer is the context that ends at the deadline.
type timer struct {
	context.Context
	cancel context.CancelFunc
}

// requestKey asks a context for the request that this gate admitted.
type requestKey struct{ gate *Gate }

// anyRequestKey asks for the innermost admitted request of any gate.
type anyRequestKey struct{}

// Deadline returns the instant at which the answer becomes worthless.
func (r *work) Deadline() (time.Time, bool) {
	if r.deadline.IsZero() {
		return r.Context.Deadline()
	}
	return r.deadline, true
}

// Done makes the timer at the first call: most handlers never call it, and a timer
// costs more than the rest of the gate.
func (r *work) Done() <-chan struct{} {
	if r.deadline.IsZero() {
		return r.Context.Done()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timedLocked().Done()
}

// Err is non-nil exactly when Done is closed.
func (r *work) Err() error { return r.current().Err() }

// Value knows the request itself and its level. Package context asks with a *int of
// its own for the node that ends a context, to hang children on it directly and to
// read its cause: that must be the one that Done and Err speak of.
func (r *work) Value(key any) any {
	switch k := key.(type) {
	case requestKey:
		if k.gate == r.gate {
			return r
		}
	case anyRequestKey:
		return r
	case *int:
		return r.current().Value(key)
	}
	if key == priority.Key() {
		return r.level
	}
	return r.Context.Value(key)
}

// current returns the context that says whether this one is over. Once the timer is
// made it decides alone, since Done is its channel. It is made here when the time or
// the request is over, so that an error once seen stays.
func (r *work) current() context.Context {
	if r.deadline.IsZero() {
		return r.Context
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer == nil && r.visit != nil && time.Until(r.deadline) > 0 {
		return r.Context
	}
	return r.timedLocked()
}

// timedLocked returns the timer, made if need be. One made after the end of the
// request is over at once: what Err says must not depend on earlier calls of Done.
func (r *work) timedLocked() context.Context {
	if r.timer == nil {
		ctx, cancel := context.WithDeadline(r.Context, r.deadline)
		r.timer = &timer{ctx, cancel}
		if r.visit == nil {
			cancel()
		}
	}
	return r.timer
}

// running reports whether the request is still being served in its slot. One that is
// over admits nothing more, however long its context is kept, and so does a stream that
// has given its slot back: what it sends inward is work of its own.
func (r *work) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.visit != nil && !r.streaming
}

// charge adjusts what the request was charged, once and before its end.
func (r *work) charge(cost int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.visit == nil || r.charged {
		return false
	}
	r.charged = true
	r.visit.charge(cost)
	return true
}

// chargeIn does the same for a unit.
func (r *work) chargeIn(unit string, n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.visit != nil && r.visit.chargeIn(unit, n)
}

// finish accounts for the end of the handler. returned is false when it panicked
// or left through runtime.Goexit; the panic is not touched.
func (r *request) finish(returned bool) {
	v, t := r.over()
	outcome := r.outcome(returned, v.now, t)
	r.end(v, t, outcome, r.measured(outcome, r.Hijacked))
}

// release ends work that reports its outcome itself, once.
func (r *work) release(reported shed.Outcome) {
	v, t := r.over()
	if v != nil {
		outcome := r.timely(reported, v.now, t)
		r.end(v, t, outcome, r.measured(outcome, false))
	}
}

// over ends the request for whoever asks it from now on. It gives no visit if it was
// over before.
func (r *work) over() (*visit, *timer) {
	r.mu.Lock()
	v, t := r.visit, r.timer
	r.visit = nil
	r.mu.Unlock()
	if v != nil {
		v.tick()
	}
	return v, t
}

// end gives everything back, and tells the slots what they are to learn.
func (r *work) end(v *visit, t *timer, outcome, measured shed.Outcome) {
	if t != nil {
		t.cancel()
	}
	r.opening().over()
	if !r.streaming {
		v.held, _ = v.at.slots.ReleaseAt(v.now, v.slot, measured)
	}
	v.ended(outcome, v.held, r.streaming)
}

// outcome says what the request, which ended at now, tells about capacity.
func (r *request) outcome(returned bool, now time.Time, t *timer) shed.Outcome {
	switch {
	case r.Hijacked:
		return shed.Ignored
	case !returned && !r.streaming:
		return shed.Failed
	}
	return r.timely(outcomeOf(r.Status), now, t)
}

// timely is the outcome that the work itself reports, unless it is a stream that left its
// slot, or time or client had left it first.
func (r *work) timely(reported shed.Outcome, now time.Time, t *timer) shed.Outcome {
	switch {
	case r.streaming:
		return shed.Ignored
	case r.late(now, t), r.opening().late():
		return shed.TimedOut
	case r.Context.Err() != nil:
		return shed.Ignored
	}
	return reported
}

// late reports whether the deadline ended the request.
func (r *work) late(now time.Time, t *timer) bool {
	switch err := r.Context.Err(); {
	case t != nil:
		return t.Err() == context.DeadlineExceeded
	case err != nil:
		return err == context.DeadlineExceeded
	}
	return !r.deadline.IsZero() && !now.Before(r.deadline)
}

// measured says what the slots are told. Only a client that left is Ignored there:
// a law may take that for evidence, and nothing can be learned from the caller's
// mistakes and from a connection taken over.
func (r *work) measured(outcome shed.Outcome, hijacked bool) shed.Outcome {
	if outcome == shed.Ignored && (hijacked || r.Context.Err() == nil) {
		return shed.Unmeasured
	}
	return outcome
}

// outcomeOf reads a status: a fast failure is not throughput, a dropped call
// downstream is evidence of overload, and the caller's mistakes say nothing.
func outcomeOf(status int32) shed.Outcome {
	switch {
	case status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return shed.TimedOut
	case status >= 500:
		return shed.Failed
	case status >= 400, status == http.StatusSwitchingProtocols:
		return shed.Ignored
	}
	return shed.Served
}

// opened says how the opening of a stream ended that reports itself so.
func (r *work) opened(reported shed.Outcome, hijacked bool) shed.Outcome {
	if r.opening().late() {
		return shed.TimedOut
	}
	return r.measured(reported, hijacked)
}

// Heading leaves one value in each field about limits.
func (r *request) Heading(h http.Header) {
	if r.told != 0 {
		r.told.Once(h)
	}
}

// Streaming gives the slot of a stream back; the stream stays under its own cap. The
// slot was for the opening, and that is served work unless the answer says otherwise.
func (r *request) Streaming() {
	opened := shed.Served
	if r.Status >= 400 {
		opened = outcomeOf(r.Status)
	}
	r.begun(opened, r.Hijacked)
}

// begun is told that the opening of a stream has ended, and how.
func (r *work) begun(opened shed.Outcome, hijacked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.visit; v != nil && v.route.streams > 0 && !r.streaming {
		r.streaming = true
		r.opening().begun()
		v.gate.streams.Add(1) // before the slot is free: Drain counts slots, then streams
		v.held, _ = v.at.slots.Release(v.slot, r.opened(opened, hijacked))
	}
}

var _ context.Context = (*work)(nil)
