package pacer

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Report says what came of a call made under ctx. Throttles and overloads cut the
// rate of all who share the key, once per epoch, and a hint keeps them away for that
// long; other verdicts change nothing. It returns whether the rate was cut and
// whether a pause began or was prolonged. It does not block.
//
// A Headgate gate sheds by level: what it refused to one level it may grant to a
// higher one, so its 503 keeps away the call's own level and those below. And a bare
// 503, without hint or reason, is an accident until a tenth of the answers are such.
func (o *Operation) Report(ctx context.Context, v verdict.Verdict) (cut, paused bool) {
	o.counts.kinds[v.Kind].Add(1)
	if !v.Kind.AsksForLess() {
		return false, false
	}
	now := time.Now()
	s := slowdownOf(ctx, v, o.pacer.opts.MaxPause)
	if s.none() || bare(v) && !o.overloaded(now) {
		return false, false
	}
	if !v.ServiceWide {
		return o.slow(now, s)
	}
	o.svc.pause(now.Add(s.pause), s.level)
	for _, each := range o.pacer.siblings(o) {
		c, p := each.slow(now, s)
		if each == o {
			cut, paused = c, p
		}
	}
	return cut, paused
}

// StartCall notes a call, which earns its share of a retry, and returns the time.
func (o *Operation) StartCall() time.Time {
	now := time.Now()
	o.retries.call(now)
	return now
}

// TakeRetry charges one retry to the budget, or reports false and charges nothing.
func (o *Operation) TakeRetry() bool { return o.retries.take(time.Now()) }

// CountRetry counts a retry that is about to be sent.
func (o *Operation) CountRetry() { o.counts.retries.Add(1) }

// ChargeResend charges for a send that net/http repeated by itself. If no token is to
// be had now, the next one pays. It does not block: net/http calls it between two
// writes.
func (o *Operation) ChargeResend() {
	o.counts.attempts.Add(1)
	o.counts.resends.Add(1)
	o.line.owe(time.Now())
}

// Refuse counts a refusal made for the operation by a caller of this package, and
// returns it.
func (o *Operation) Refuse(reason Reason, err error) *Refusal {
	o.counts.refused[reason].Add(1)
	return &Refusal{Reason: reason, Err: err}
}

// note counts err if it is a refusal. These errors come as they were made: errors.As
// would cost every call an allocation.
func (o *Operation) note(err error) error {
	if refusal, ok := err.(*Refusal); ok {
		o.counts.refused[refusal.Reason].Add(1)
	}
	return err
}

// CanSend reports whether a call asked for after delay could be sent before ctx's
// deadline, as things stand.
func (o *Operation) CanSend(ctx context.Context, delay time.Duration) bool {
	p, now, level := o.limiter.Policy(o.key), time.Now(), levelOf(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	wait := o.predict(now, level, o.line.ahead(level), o.rateInForce(now, p), p.Burst)
	if wait > delay+o.pacer.opts.MaxWait {
		return false
	}
	d, ok := ctx.Deadline()
	return !ok || now.Add(max(wait, delay)).Before(d)
}

// atRest reports whether forgetting the operation changes nothing.
func (o *Operation) atRest(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Sub(o.used) > restAfter && !o.line.serving && o.counts.inFlight.Load() == 0 &&
		!o.law.active(now) && o.pauseLeft(now, lowest) <= 0
}

// outcomeOf says what an attempt's end tells about the capacity behind it.
func outcomeOf(k verdict.Kind) shed.Outcome {
	switch k {
	case verdict.OK, verdict.Conflict, verdict.Permanent:
		return shed.Served
	case verdict.Transient:
		return shed.Failed
	case verdict.Overloaded:
		return shed.TimedOut
	}
	return shed.Ignored
}

// slowdown is what a verdict asks of all who share a key.
type slowdown struct {
	factor float64       // on the rate; 1: none
	pause  time.Duration // how long to stay away
	level  int           // up to which level
}

func slowdownOf(ctx context.Context, v verdict.Verdict, maxPause time.Duration) slowdown {
	s := slowdown{factor: 1, level: highest}
	switch v.Kind {
	case verdict.Throttled:
		s.factor = cutThrottle
	case verdict.Overloaded:
		s.factor = cutOverload
		if v.Reason.Refused() {
			s.level = levelOf(ctx)
		}
	case verdict.QuotaExhausted: // a matter of days, not of the rate
		s.pause = quotaPause
	}
	if v.Hinted {
		s.pause = v.Hint
	}
	s.pause = min(max(s.pause, 0), maxPause)
	return s
}

// A quota that is spent without a word on when it returns is asked once a minute.
const quotaPause = time.Minute

func (s slowdown) none() bool { return s.factor == 1 && s.pause == 0 }

// sharedPause is the pause for a limiter shared with other processes. It knows no
// levels, so a pause that spares some is kept here.
func (s slowdown) sharedPause() time.Duration {
	if s.level < highest {
		return 0
	}
	return s.pause
}

// slow slows the operation down. It reports whether the rate was cut and whether a
// new pause began.
func (o *Operation) slow(now time.Time, s slowdown) (cut, paused bool) {
	p := o.limiter.Policy(o.key)
	if o.shared != nil && s.factor < 1 {
		o.shared.Throttled(now, o.key, s.sharedPause(), s.factor)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.pause > 0 && now.Add(s.pause).After(o.paused[s.level]) {
		paused = o.paused.extend(now.Add(s.pause+jitter(s.pause)), s.level)
		o.spread = Spread(s.pause)
	}
	cut = !o.adapts && s.factor < 1 && o.cutLocked(now, s, p)
	if cut || paused && s.level == highest { // the first call to go is one of the highest level
		o.bucket.reset(now.Add(o.pauseLeft(now, highest)), now)
	}
	if cut {
		o.counts.cuts.Add(1)
	}
	if paused {
		o.counts.pauses.Add(1)
	}
	if cut || paused {
		o.refuseLateLocked(now, p)
	}
	return cut, paused
}

// cutLocked applies the law. A rate that is not configured is the one measured when
// the server first objected.
func (o *Operation) cutLocked(now time.Time, s slowdown, p ratelimit.Policy) bool {
	top := knownTop
	if p.Rate == rate.Inf {
		top = measuredTop
		if !o.law.active(now) {
			o.base = max(o.meter.perSecond(now), minMeasured)
			o.burst = max(1, o.base/10)
		}
	} else {
		o.base, o.burst = float64(p.Rate), float64(p.Burst)
	}
	return o.law.cut(now, s.factor, top, s.pause)
}

// minMeasured, in calls per second, is the least that counts as measured: a server
// that refused one lone call has not asked for a crawl.
const minMeasured = 10

// refuseLateLocked refuses the calls in line whose turn will now come too late. They
// learn it at once, not at the end of a wait that could not end well.
func (o *Operation) refuseLateLocked(now time.Time, p ratelimit.Policy) {
	r := o.rateInForce(now, p)
	o.line.each(func(place int, w *waiter) {
		wait := o.predict(now, w.level, place, r, p.Burst)
		if !now.Add(wait).Before(w.until) {
			o.line.finish(w, Grant{}, o.tooLong(now, w.level, wait, w.until))
		}
	})
}

// Spread is how far the calls that are kept away by the same hint return from each
// other. It grows with the hint, because those who stay away for long are many when
// they return.
func Spread(hint time.Duration) time.Duration {
	if hint <= 0 {
		return 0
	}
	return min(max(hint*2/5, 50*time.Millisecond), 5*time.Second)
}

// jitter spreads the processes that were given the same hint, upwards only. It is much
// less than the spread of the calls, so that the end of the pause does not gather those
// that come back by themselves.
func jitter(hint time.Duration) time.Duration {
	if hint <= 0 {
		return 0
	}
	return rand.N(min(max(hint/10, 50*time.Millisecond), 5*time.Second))
}

// pauses says for each level until when its calls stay away. A pause of a level is a
// pause of those below it, so no level ever waits longer than a lower one.
type pauses [priority.Count]time.Time

// extend keeps the levels up to the given one away until t, and reports whether that
// is news.
func (p *pauses) extend(t time.Time, level int) (news bool) {
	for i := range p[:level+1] {
		if t.After(p[i]) {
			p[i], news = t, true
		}
	}
	return news
}

// bare reports whether v is a 503 that says nothing but that.
func bare(v verdict.Verdict) bool {
	return v.Kind == verdict.Overloaded && !v.Hinted && !v.Reason.Refused()
}

// overloaded reports whether bare overloads are more than an accident.
func (o *Operation) overloaded(now time.Time) bool {
	var answered uint64
	for k := range o.counts.kinds {
		if k := verdict.Kind(k); k != verdict.LocalRefusal && k != verdict.Canceled {
			answered += o.counts.kinds[k].Load()
		}
	}
	overloads := o.counts.kinds[verdict.Overloaded].Load()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.overloads.large(now, answered, overloads)
}

// overloadShare tells how large a part of the answers were overloads of late. A
// single 503 among a thousand answers is one instance in trouble, and a client that
// halved its rate for it would starve itself of a service that is well.
type overloadShare struct {
	since               time.Time
	answered, overloads uint64 // totals then
}

const (
	shareWindow = time.Second
	fewAnswers  = 10
	largeShare  = 0.1
)

// large notes the totals at now and reports whether the share since the last look, a
// second ago at least, is a tenth or more of at least ten answers.
func (s *overloadShare) large(now time.Time, answered, overloads uint64) bool {
	total, bad := answered-s.answered, overloads-s.overloads
	if now.Sub(s.since) >= shareWindow {
		*s = overloadShare{now, answered, overloads}
	}
	return total >= fewAnswers && float64(bad) >= largeShare*float64(total)
}
