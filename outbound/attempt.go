package outbound

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
)

// attempter makes single attempts: it charges each to the pacer, sends it under the
// breaker, judges its end and reports that to the pacer. It stands below every retry
// and every redirect, so that it counts what the quota counts.
type attempter struct {
	judge   judge
	watch   watcher
	breaker func(*http.Request) Breaker // nil: none
	sender  *sender
}

// do makes one attempt and says what came of it.
func (t *attempter) do(req *http.Request, o *pacer.Operation) (*http.Response, verdict.Verdict, error) {
	var start time.Time
	if t.watch.on() {
		start = time.Now()
	}
	resp, err := t.sent(req, o)
	v := t.judge.verdict(resp, err)
	cut, paused := o.Report(req.Context(), v)
	if t.watch.on() && v.Kind != verdict.LocalRefusal {
		t.watch.answered(o.Key(), v, time.Since(start))
		t.watch.slowed(o, v, cut || paused)
	}
	return resp, v, err
}

// sent makes a charged attempt, under the breaker if there is one.
func (t *attempter) sent(req *http.Request, o *pacer.Operation) (*http.Response, error) {
	if t.breaker != nil {
		if b := t.breaker(req); b.Execute != nil {
			return t.guarded(b, req, o)
		}
	}
	return t.charged(req, o)
}

// charged sends req when it is its turn, or returns a [*pacer.Refusal] and sends
// nothing.
func (t *attempter) charged(req *http.Request, o *pacer.Operation) (*http.Response, error) {
	a := t.sender.begin(o)
	if err := a.enter(req.Context()); err != nil {
		closeBody(req)
		t.watch.refused(o.Key(), err)
		return nil, err
	}
	resp, err := t.sender.send(req, a)
	if err != nil {
		a.failed(err)
		return nil, err
	}
	a.kind = Classify(resp, nil).Kind
	hold(resp, &a.body)
	return resp, nil
}

// attempt is one attempt under way, together with the body that ends it: one object.
type attempt struct {
	body    heldBody
	op      *pacer.Operation
	job     *Attempts
	grant   pacer.Grant
	kind    verdict.Kind
	flight  *flight   // the object it is part of, or nil
	timeout [1]string // value of the deadline's header
	url     url.URL   // the copy's own: bases that find a server for a name write into it
}

// enter takes what an attempt costs. Nothing is taken when it fails.
func (a *attempt) enter(ctx context.Context) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	a.job = attemptsFrom(ctx)
	if a.job != nil && !a.job.Take() {
		return a.op.Refuse(pacer.AttemptsSpent, nil)
	}
	a.grant, err = a.op.Acquire(ctx)
	if err != nil && a.job != nil {
		a.job.undo()
	}
	return err
}

func (a *attempt) end() { a.grant.Release(a.kind) }

// failed ends an attempt without an answer. What never left is not charged.
func (a *attempt) failed(err error) {
	if a.unsent(err) {
		a.grant.Undo()
		if a.job != nil {
			a.job.undo()
		}
	}
	a.kind = Classify(nil, err).Kind
	a.body.finish()
}

// unsent reports whether nothing of the attempt was sent: net/http knows, if it was
// asked to tell, and some errors are proof.
func (a *attempt) unsent(err error) bool {
	if a.flight != nil && a.flight.counting() {
		return a.flight.written.Load() == 0
	}
	return errors.Is(err, verdict.ErrLocal) || verdict.NeverLeft(err)
}

// sender is the last part before the base: it makes the copy of the request that
// the base may do with as it likes, tells the server how much time is left and how
// much the call matters, and bounds the attempt.
type sender struct {
	base     http.RoundTripper
	timeout  time.Duration // zero: none
	resends  bool          // count what net/http sends again
	deadline string        // header fields in canonical form; empty: none
	level    string
	clocks   clocks
	traces   atomic.Bool // the base has called a hook of a trace
}

// begin makes the attempt's one object: a small one, or a large one if the attempt
// needs a context of its own.
func (t *sender) begin(o *pacer.Operation) *attempt {
	if t.timeout <= 0 && !t.resends {
		a := &attempt{op: o}
		a.body.held = a
		return a
	}
	f := &flight{attempt: attempt{op: o}}
	f.attempt.flight, f.body.held = f, f
	return &f.attempt
}

// send sends a copy of req.
func (t *sender) send(req *http.Request, a *attempt) (*http.Response, error) {
	f := a.flight
	if f == nil {
		out := req.WithContext(req.Context())
		t.prepare(out, a)
		return t.base.RoundTrip(out)
	}
	f.begin(req.Context(), t)
	out := req.WithContext(f)
	t.prepare(out, a)
	resp, err := t.base.RoundTrip(out)
	return f.answered(resp, err)
}

// prepare gives out a URL and a header of its own, and the fields that speak of this
// attempt. They are set over what came in, and removed where this side has nothing to
// say: a proxy that passes its caller's deadline on would promise time that is spent.
func (t *sender) prepare(out *http.Request, a *attempt) {
	a.url = *out.URL
	out.URL, out.Header = &a.url, out.Header.Clone()
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if t.deadline != "" {
		delete(out.Header, t.deadline)
		if left, ok := t.left(out.Context()); ok {
			a.timeout[0] = strconv.FormatInt(max(left.Milliseconds(), 1), 10)
			out.Header[t.deadline] = a.timeout[:]
		}
	}
	if t.level != "" {
		delete(out.Header, t.level)
		if l, ok := priority.FromContext(out.Context()); ok {
			out.Header[t.level] = []string{l.String()}
		}
	}
}

// left returns how long this attempt may take, and whether anything bounds it.
func (t *sender) left(ctx context.Context) (time.Duration, bool) {
	d, ok := ctx.Deadline()
	if !ok {
		return t.timeout, t.timeout > 0
	}
	left := time.Until(d)
	if t.timeout > 0 {
		left = min(left, t.timeout)
	}
	return left, true
}
