package admission

import (
	"context"
	"time"
)

// opening bounds the time until a stream begins: its client waits for that, and a
// slot is held for it. It is a context that is cancelled, for the reason
// [context.DeadlineExceeded], if the deadline passes first; it states no Deadline,
// since what is begun has none.
type opening struct {
	context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// open starts the clock.
func open(parent context.Context, deadline time.Time) *opening {
	ctx, cancel := context.WithCancelCause(parent)
	timer := time.AfterFunc(time.Until(deadline), func() { cancel(context.DeadlineExceeded) })
	return &opening{ctx, cancel, timer}
}

// opening returns the bound on the stream's opening, or nil.
func (r *request) opening() *opening {
	o, _ := r.Context.(*opening)
	return o
}

// begun stops the clock.
func (o *opening) begun() {
	if o != nil {
		o.timer.Stop()
	}
}

// late reports whether the deadline passed before the stream began.
func (o *opening) late() bool {
	return o != nil && context.Cause(o.Context) == context.DeadlineExceeded
}

// over gives everything back.
func (o *opening) over() {
	if o != nil {
		o.timer.Stop()
		o.cancel(nil)
	}
}

// opensIn reports whether the visit opens a stream, and by when it must have begun.
func (v *visit) opensIn() (time.Time, bool) {
	return v.Deadline, v.route.streams > 0 && v.Outcomes == Watch && !v.Deadline.IsZero()
}
