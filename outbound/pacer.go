package outbound

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// Pacer is the ceiling that all callers of a service share. It knows nothing of
// HTTP: a [Transport] has one inside, and a middleware of an SDK or an interceptor
// of gRPC may use one directly:
//
//	pass, err := pacer.Wait(ctx, key) // before each attempt
//	…
//	pacer.Heard(ctx, key, verdict)    // after it
//
// A key's Space is the service and its ID the operation in it: what the quota
// counts. Whatever one caller hears about an operation, everybody who shares the
// key acts upon; what concerns the whole service, everybody who shares the Space.
// It is safe for concurrent use, and starts no goroutine: while somebody waits, one
// timer per operation runs.
type Pacer struct {
	opts  PacerOptions
	start time.Time

	mu       sync.RWMutex
	ops      map[ratelimit.Key]*operation
	services map[string]*service
	overflow *operation
	swept    time.Time
}

// Wait returns when a call to key may be sent. It blocks until its turn comes: by
// the level in ctx (see package priority), then in order of arrival. It returns a
// [*Refusal] at once, without waiting, when its turn would come after ctx's deadline
// or after MaxWait, and later if a pause or a cut makes that so; the context's error
// when ctx ends. Either way nothing was taken.
//
// A granted Pass is a token spent. Give it back with Undo if the call did not leave.
func (p *Pacer) Wait(ctx context.Context, key ratelimit.Key) (Pass, error) {
	if ctx.Err() != nil {
		return Pass{}, context.Cause(ctx)
	}
	return p.wait(ctx, time.Now(), p.operation(key), p.opts.MaxWait)
}

func (p *Pacer) wait(ctx context.Context, now time.Time, o *operation, longest time.Duration) (Pass, error) {
	level, _ := priority.FromContext(ctx)
	pass, err := o.wait(ctx, now, level.Index(), longest)
	o.refuse(err)
	return pass, err
}

// refuse counts a refusal; any other error, and none, is not one. These errors come
// as they were made: errors.As would cost every call an allocation.
func (o *operation) refuse(err error) {
	if refusal, ok := err.(*Refusal); ok {
		o.counts.refused[refusal.Why].Add(1)
	}
}

// tryNow takes a token only if one is to be had without waiting.
func (o *operation) tryNow(ctx context.Context) (Pass, bool) {
	level, _ := priority.FromContext(ctx)
	if !o.vacant(level.Index()) {
		return Pass{}, false
	}
	pass, _, ok := o.ask(ctx, time.Now(), level.Index())
	return pass, ok
}

// Pass is a token for one call. It is a value.
type Pass struct {
	o        *operation
	decision ratelimit.Decision
	held     bool // a token of the law's bucket was taken too
}

// Undo returns the token: the call did not leave. Call it at most once.
func (p Pass) Undo(now time.Time) {
	if p.o == nil {
		return
	}
	p.decision.Undo(now)
	if p.held {
		p.o.giveBack()
	}
}

// Heard tells what came of a call to key made under ctx. Throttles and overloads cut
// the rate of everybody who shares the key, once per epoch, and a hint keeps
// everybody away for that long; other verdicts change nothing.
//
// A Headgate gate sheds by level: what it refused to one level it may grant to a
// higher one, so its 503 keeps away the call's own level and those below. And a bare
// 503, without hint or reason, is an accident until a tenth of the answers are.
func (p *Pacer) Heard(ctx context.Context, key ratelimit.Key, v Verdict) {
	p.heard(ctx, p.operation(key), v)
}

func (p *Pacer) heard(ctx context.Context, o *operation, v Verdict) (cut, paused bool) {
	o.counts.kinds[v.Kind].Add(1)
	if !slowDown(v.Kind) {
		return false, false
	}
	now := time.Now()
	s := p.slowdown(ctx, v)
	if s.none() || bare(v) && !o.overloaded(now) {
		return false, false
	}
	if v.Scope == ScopeOperation {
		return o.note(o.slow(now, s))
	}
	o.svc.pause(now.Add(s.pause), s.level)
	for _, each := range p.siblings(o) {
		c, b := each.note(each.slow(now, s))
		if each == o {
			cut, paused = c, b
		}
	}
	return cut, paused
}

// slowdown says what a verdict asks for.
func (p *Pacer) slowdown(ctx context.Context, v Verdict) slowdown {
	s := slowdown{factor: 1, level: highest}
	switch v.Kind {
	case Throttled:
		s.factor = cutThrottle
	case Overloaded:
		s.factor = cutOverload
		if v.Reason.Refused() {
			level, _ := priority.FromContext(ctx)
			s.level = level.Index()
		}
	case QuotaExhausted: // a matter of days, not of the rate
		s.pause = quotaPause
	}
	if v.Hinted {
		s.pause = v.Hint
	}
	s.pause = min(max(s.pause, 0), p.opts.MaxPause)
	return s
}

func (o *operation) note(cut, paused bool) (bool, bool) {
	if cut {
		o.counts.cuts.Add(1)
	}
	if paused {
		o.counts.pauses.Add(1)
	}
	return cut, paused
}

// fits reports whether a call to o, asked for after delay, could be sent before
// ctx's deadline as things stand.
func (p *Pacer) fits(ctx context.Context, o *operation, delay time.Duration) bool {
	level, _ := priority.FromContext(ctx)
	pol := o.limiter.Policy(o.key)
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	l := level.Index()
	wait := o.predict(now, l, o.line.ahead(l), o.lawRate(now, pol), pol.Burst)
	if wait > delay+p.opts.MaxWait {
		return false
	}
	d, ok := ctx.Deadline()
	return !ok || now.Add(max(wait, delay)).Before(d)
}

// jitter spreads those who were given the same hint, upwards only.
func jitter(hint time.Duration) time.Duration {
	if hint <= 0 {
		return 0
	}
	return rand.N(min(max(hint/10, 50*time.Millisecond), 5*time.Second))
}
