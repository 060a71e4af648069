package outbound

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// flight is an attempt with a context of its own: one that ends when the attempt
// takes too long, or counts how often the request is sent. It is that context, so
// that all of it is one object.
type flight struct {
	attempt
	context.Context
	cancel  context.CancelCauseFunc
	sender  *sender
	clock   *clock // nil: no time limit
	trace   httptrace.ClientTrace
	traced  bool         // the trace is handed out by Value
	written atomic.Int32 // times the header went out
}

// begin prepares the attempt's context and starts its clock.
func (f *flight) begin(ctx context.Context, t *sender) {
	f.Context, f.sender = ctx, t
	if t.resends {
		f.trace.WroteHeaders = f.wrote
		if f.traced = traceKey != nil && httptrace.ContextClientTrace(ctx) == nil; !f.traced {
			f.Context = httptrace.WithClientTrace(ctx, &f.trace) // beside the caller's own
		}
	}
	if t.timeout > 0 {
		f.Context, f.cancel = context.WithCancelCause(f.Context)
		f.clock = t.clocks.start(f, t.timeout)
	}
}

// Value answers for the trace, which saves a context around the context.
func (f *flight) Value(key any) any {
	if f.traced && key == traceKey {
		return &f.trace
	}
	return f.Context.Value(key)
}

// traceKey is the key under which net/http/httptrace looks for a trace. It is not
// exported, but a context that is asked for it sees it.
var traceKey = findTraceKey()

func findTraceKey() any {
	var finder keyFinder
	httptrace.ContextClientTrace(&finder)
	return finder.key
}

type keyFinder struct {
	context.Context
	key any
}

func (f *keyFinder) Value(key any) any {
	f.key = key
	return nil
}

// counting reports whether the base is known to report what it sends. Not every base
// does, and silence of one that never spoke is no proof that nothing was sent.
func (f *flight) counting() bool {
	return f.trace.WroteHeaders != nil && f.sender.traces.Load()
}

// wrote is called by net/http each time it has sent the header. On a kept
// connection that turns out to be dead it sends again by itself, and the quota
// counts both.
func (f *flight) wrote() {
	if !f.sender.traces.Load() {
		f.sender.traces.Store(true)
	}
	if f.written.Add(1) == 1 {
		return
	}
	f.op.ChargeResend()
	if f.job != nil {
		f.job.owe()
	}
}

func (f *flight) expire() { f.cancel(errAttemptTimeout) }

// clock is a timer that is used again: one that was stopped in time does nothing to
// its last flight.
type clock struct {
	timer *time.Timer
	f     *flight
	of    *clocks
}

// clocks belong to one transport: a timer made in a bubble of testing/synctest must
// not turn up in another.
type clocks struct{ pool sync.Pool }

func (p *clocks) start(f *flight, d time.Duration) *clock {
	c, _ := p.pool.Get().(*clock)
	if c == nil {
		c = &clock{f: f, of: p}
		c.timer = time.AfterFunc(d, func() { c.f.expire() })
		return c
	}
	c.f = f
	c.timer.Reset(d)
	return c
}

func (c *clock) stop() bool {
	if !c.timer.Stop() {
		return false
	}
	c.f = nil
	c.of.pool.Put(c)
	return true
}

// answered ends the time limit, which is for the answer's header: how long a body may
// take is for the caller's context.
func (f *flight) answered(resp *http.Response, err error) (*http.Response, error) {
	if f.clock == nil {
		return resp, err
	}
	inTime := f.clock.stop()
	switch {
	case err == nil && inTime:
		return resp, nil
	case err == nil: // the header came as time ran out: its body is cut off already
		_ = resp.Body.Close()
		return nil, errAttemptTimeout
	case context.Cause(f.Context) == errAttemptTimeout:
		return nil, errAttemptTimeout
	}
	return nil, err
}

// end is called when the answer is done with, or there is none.
func (f *flight) end() {
	if f.cancel != nil {
		f.cancel(nil)
	}
	f.attempt.end()
}

// errAttemptTimeout ends an attempt that took too long. It is not the caller's
// deadline, and another attempt may follow.
var errAttemptTimeout error = attemptTimeout{}

type attemptTimeout struct{}

func (attemptTimeout) Error() string { return "outbound: attempt timed out" }
func (attemptTimeout) Timeout() bool { return true }
