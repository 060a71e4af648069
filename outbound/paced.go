package outbound

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// paced is the RoundTripper that charges each attempt: the job's budget of
// attempts, a token, a slot. It stands below every retry and every redirect, so
// that it counts what the quota counts.
type paced struct {
	pacer   *Pacer
	key     func(*http.Request) ratelimit.Key
	next    http.RoundTripper
	resends bool
	watch   watcher
}

// Over returns a RoundTripper that waits for its turn at p before each request it
// passes to next. Nil next means http.DefaultTransport, nil key [ByHost]. It hears
// nothing of the answers: put it below [Listen], or call Heard.
func (p *Pacer) Over(next http.RoundTripper, key func(*http.Request) ratelimit.Key) http.RoundTripper {
	return &paced{pacer: p, key: keyOr(key), next: orDefault(next)}
}

// ByHost is the default key: one quota per host called.
func ByHost(req *http.Request) ratelimit.Key { return ratelimit.Key{Space: req.URL.Host} }

func keyOr(key func(*http.Request) ratelimit.Key) func(*http.Request) ratelimit.Key {
	if key == nil {
		return ByHost
	}
	return key
}

// RoundTrip sends req when it is its turn, or returns a [*Refusal] and sends
// nothing.
func (t *paced) RoundTrip(req *http.Request) (*http.Response, error) {
	o := t.pacer.operation(t.key(req))
	s := &send{op: o}
	if err := t.enter(req.Context(), s); err != nil {
		closeBody(req)
		t.watch.refused(o.key, err)
		return nil, err
	}
	s.body.held = s
	o.counts.attempts.Add(1)
	o.counts.inFlight.Add(1)
	if t.resends {
		req = s.traced(req)
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		s.failed(err, t.resends)
		return nil, err
	}
	s.outcome = outcomeOf(Classify(resp, nil))
	hold(resp, &s.body)
	return resp, nil
}

// enter takes what an attempt costs. Nothing is taken when it fails.
func (t *paced) enter(ctx context.Context, s *send) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.job = attemptsFrom(ctx)
	if s.job != nil && !s.job.Take() {
		s.op.counts.refused[AttemptsSpent].Add(1)
		return &Refusal{Why: AttemptsSpent}
	}
	err := t.turn(ctx, s)
	if err != nil && s.job != nil {
		s.job.undo()
	}
	return err
}

// turn waits until token and slot are both to be had, and never holds one while it
// waits for the other. A token paid now and sent when a slot frees would be a burst
// in hiding: when a stalled server comes back, every call that waited would leave
// at once, whatever the rate. And a slot held by somebody who waits for the pace of
// one operation is missing in another.
func (t *paced) turn(ctx context.Context, s *send) error {
	slots := s.op.svc.slots
	for {
		pass, err := t.pacer.wait(ctx, s.op)
		if err != nil {
			return err
		}
		s.pass = pass
		if slots == nil {
			return nil
		}
		if s.grant, err = slots.TryAcquire(time.Now(), ticketOf(ctx, 0)); err == nil {
			return nil
		}
		pass.Undo(time.Now())
		if s.grant, err = acquire(ctx, slots, t.pacer.opts.MaxWait); err != nil {
			s.op.refuse(err)
			return err
		}
		var ok bool
		if s.pass, ok = s.op.tryNow(ctx); ok {
			return nil
		}
		slots.Release(s.grant, shed.Ignored)
	}
}

// send is one attempt under way, together with the body that ends it: one object.
type send struct {
	body    heldBody
	op      *operation
	job     *Attempts
	pass    Pass
	grant   queue.Grant
	outcome shed.Outcome
	written atomic.Int32 // times the header went out, when traced
}

func (s *send) end() {
	s.op.counts.inFlight.Add(-1)
	if s.op.svc.slots != nil {
		s.op.svc.slots.Release(s.grant, s.outcome)
	}
}

// failed ends an attempt without an answer. What never left is not charged.
func (s *send) failed(err error, traced bool) {
	unsent := errors.Is(err, ErrLocal) || neverLeft(err)
	if traced {
		unsent = s.written.Load() == 0
	}
	if unsent {
		s.op.counts.attempts.Add(^uint64(0))
		s.pass.Undo(time.Now())
		if s.job != nil {
			s.job.undo()
		}
	}
	s.outcome = outcomeOf(classifyError(err))
	s.body.finish()
}

// traced makes net/http tell how often it sends the request: on a connection that
// turns out to be dead it sends again by itself, and the quota counts both.
func (s *send) traced(req *http.Request) *http.Request {
	trace := &httptrace.ClientTrace{WroteHeaders: s.wrote}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
}

func (s *send) wrote() {
	if s.written.Add(1) == 1 {
		return
	}
	s.op.counts.attempts.Add(1)
	s.op.owe()
	if s.job != nil {
		s.job.owe()
	}
}
