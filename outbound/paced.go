package outbound

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// paced is the RoundTripper that charges each attempt: the job's budget of
// attempts, a token, a slot. It stands below every retry and every redirect, so
// that it counts what the quota counts.
type paced struct {
	pacer  *Pacer
	key    func(*http.Request) ratelimit.Key
	sender *sender           // in a Transport
	next   http.RoundTripper // used alone
	watch  watcher
}

// Over returns a RoundTripper that waits for its turn at p before each request it
// passes to next. Nil next means http.DefaultTransport, nil key [ByHost]. It hears
// nothing of the answers: put it below [Listen], or call Heard.
func (p *Pacer) Over(next http.RoundTripper, key func(*http.Request) ratelimit.Key) http.RoundTripper {
	return &paced{pacer: p, key: keyOr(key), next: orDefault(next)}
}

// ByHost is the default key: one quota per host called, in lower case and with its
// port if the URL names one.
func ByHost(req *http.Request) ratelimit.Key {
	return ratelimit.Key{Space: strings.ToLower(req.URL.Host)}
}

func keyOr(key func(*http.Request) ratelimit.Key) func(*http.Request) ratelimit.Key {
	if key == nil {
		return ByHost
	}
	return key
}

// RoundTrip sends req when it is its turn, or returns a [*Refusal] and sends
// nothing.
func (t *paced) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.roundTrip(req, t.pacer.operation(t.key(req)))
}

// roundTrip is RoundTrip for an operation that was looked up already.
func (t *paced) roundTrip(req *http.Request, o *operation) (*http.Response, error) {
	s := t.begin(o)
	if err := t.enter(req.Context(), s); err != nil {
		closeBody(req)
		t.watch.refused(s.op.key, err)
		return nil, err
	}
	s.op.counts.attempts.Add(1)
	s.op.counts.inFlight.Add(1)
	resp, err := t.pass(req, s)
	if err != nil {
		s.failed(err)
		return nil, err
	}
	s.outcome = outcomeOf(Classify(resp, nil))
	hold(resp, &s.body)
	return resp, nil
}

// begin makes the attempt's one object: a small one, or a large one if the attempt
// has a context of its own.
func (t *paced) begin(o *operation) *send {
	if t.sender == nil || !t.sender.elaborate() {
		s := &send{op: o}
		s.body.held = s
		return s
	}
	f := &flight{send: send{op: o}}
	f.send.flight, f.body.held = f, f
	return &f.send
}

func (t *paced) pass(req *http.Request, s *send) (*http.Response, error) {
	if t.sender == nil {
		return t.next.RoundTrip(req)
	}
	return t.sender.send(req, s)
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
func (t *paced) turn(ctx context.Context, s *send) (err error) {
	arrived, slots, longest := time.Now(), s.op.svc.slots, t.pacer.opts.MaxWait
	if s.pass, err = t.pacer.wait(ctx, arrived, s.op, longest); err != nil || slots == nil {
		return err
	}
	now := time.Now()
	if s.grant, err = slots.TryAcquire(now, ticketOf(ctx, 0)); err == nil {
		return nil
	}
	s.pass.Undo(now)
	return t.both(ctx, s, arrived.Add(longest))
}

// both waits for a slot, then for a token, until it has them at the same time.
func (t *paced) both(ctx context.Context, s *send, until time.Time) (err error) {
	slots := s.op.svc.slots
	for {
		if s.grant, err = acquire(ctx, slots, max(time.Until(until), 1)); err != nil {
			s.op.refuse(err)
			return err
		}
		var ok bool
		if s.pass, ok = s.op.tryNow(ctx); ok {
			return nil
		}
		slots.Release(s.grant, shed.Ignored)
		now := time.Now()
		if s.pass, err = t.pacer.wait(ctx, now, s.op, until.Sub(now)); err != nil {
			return err
		}
		now = time.Now()
		if s.grant, err = slots.TryAcquire(now, ticketOf(ctx, 0)); err == nil {
			return nil
		}
		s.pass.Undo(now)
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
	flight  *flight   // the object it is part of, or nil
	timeout [1]string // value of the deadline's header
	url     url.URL   // the copy's own: bases that find a server for a name write into it
}

func (s *send) end() {
	s.op.counts.inFlight.Add(-1)
	if s.op.svc.slots != nil {
		s.op.svc.slots.Release(s.grant, s.outcome)
	}
}

// failed ends an attempt without an answer. What never left is not charged.
func (s *send) failed(err error) {
	if s.unsent(err) {
		s.op.counts.attempts.Add(^uint64(0))
		s.pass.Undo(time.Now())
		if s.job != nil {
			s.job.undo()
		}
	}
	s.outcome = outcomeOf(classifyError(err))
	s.body.finish()
}

// unsent reports whether nothing of the attempt was sent: net/http knows, if it was
// asked to tell, and some errors are proof.
func (s *send) unsent(err error) bool {
	if s.flight != nil && s.flight.counting() {
		return s.flight.written.Load() == 0
	}
	return errors.Is(err, ErrLocal) || neverLeft(err)
}
