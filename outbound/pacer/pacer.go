// Package pacer is the ceiling that all callers of a service contend for: tokens, an
// adaptive law that is told of throttles, a line by level, a cap on calls in flight,
// a budget of retries. It knows nothing of HTTP.
package pacer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Pacer is the ceiling that all callers of a service share. An outbound.Transport
// has one inside; a middleware of an SDK or an interceptor of gRPC may use one
// directly:
//
//	grant, err := p.Acquire(ctx, key) // before each attempt
//	…
//	v := verdict.OfError(err)         // after it
//	p.Report(ctx, key, v)
//	grant.Release(v.Kind)
//
// A key's Space is the service and its ID the operation in it: what the quota
// counts. What one caller reports about an operation, all who share the key act
// upon; what concerns the whole service, all who share the Space. It is safe for
// concurrent use, and starts no goroutine: while a call waits, one timer per
// operation runs.
type Pacer struct {
	opts  Options
	start time.Time

	mu       sync.RWMutex
	ops      map[ratelimit.Key]*Operation
	services map[string]*service
	overflow *Operation
	swept    time.Time
}

// Options configures a Pacer. With the zero value nothing waits until a server asks
// for it.
type Options struct {
	// Rate is the quota: tokens per key. Nil means ratelimit.Unlimited, which
	// adapts too: the first throttle sets the rate to a share of the one measured.
	// A limiter in memory gives each Pacer balances of its own: what is to stay
	// under one ceiling shares the Pacer.
	Rate ratelimit.Limiter

	// MaxWait is the longest a call waits for its turn, whatever its deadline.
	// Zero means 60 s. It bounds the line: a call that would wait longer is refused
	// at once.
	MaxWait time.Duration

	// MaxPause is the longest a server's hint keeps calls away. Zero means 1 h.
	MaxPause time.Duration

	// Budget is the retry budget of each operation. The zero value is the default.
	Budget BudgetOptions

	// InFlight bounds the calls in flight to each service (to each Space). Nil
	// means unbounded. Calls beyond it wait, at most MaxWait, in a queue of at most
	// 1024.
	InFlight shed.Limit

	// MaxOperations bounds the number of keys tracked. Zero means 1024. Beyond it,
	// new keys share one operation.
	MaxOperations int
}

const (
	defaultMaxWait       = time.Minute
	defaultMaxPause      = time.Hour
	defaultMaxOperations = 1024
	slotBound            = 1024
)

// New validates o and builds a Pacer. Errors name the field.
func New(o Options) (*Pacer, error) {
	if o.Rate == nil {
		o.Rate = ratelimit.Unlimited
	}
	o.MaxWait = cmp.Or(o.MaxWait, defaultMaxWait)
	o.MaxPause = cmp.Or(o.MaxPause, defaultMaxPause)
	o.MaxOperations = cmp.Or(o.MaxOperations, defaultMaxOperations)
	if err := errors.Join(
		named("Rate", o.Rate.Validate()),
		positive("MaxWait", o.MaxWait),
		positive("MaxPause", o.MaxPause),
		positive("MaxOperations", o.MaxOperations),
		named("Budget", o.Budget.validate()),
	); err != nil {
		return nil, err
	}
	p := &Pacer{opts: o, start: time.Now(), ops: map[ratelimit.Key]*Operation{}, services: map[string]*service{}}
	svc, err := p.newService() // and the configuration of the slots is known to be good
	if err != nil {
		return nil, named("InFlight", err)
	}
	if own, ok := o.Rate.(ratelimit.Owner); ok {
		p.opts.Rate = own.Own(nil)
	}
	p.overflow = p.newOperation(ratelimit.Key{Space: "overflow"}, svc)
	return p, nil
}

func positive[T int | time.Duration](field string, v T) error {
	if v <= 0 {
		return fmt.Errorf("outbound: %s = %v: must be positive", field, v)
	}
	return nil
}

func named(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outbound: %s: %w", field, err)
}

// Acquire is [Operation.Acquire] for a key.
func (p *Pacer) Acquire(ctx context.Context, key ratelimit.Key) (Grant, error) {
	return p.Operation(key).Acquire(ctx)
}

// Report is [Operation.Report] for a key.
func (p *Pacer) Report(ctx context.Context, key ratelimit.Key, v verdict.Verdict) {
	p.Operation(key).Report(ctx, v)
}

// Operation returns what is shared under key. Keep it for one call only: an
// operation that is at rest may be forgotten.
func (p *Pacer) Operation(key ratelimit.Key) *Operation {
	p.mu.RLock()
	o := p.ops[key]
	p.mu.RUnlock()
	if o != nil {
		return o
	}
	return p.addOperation(key)
}

func (p *Pacer) addOperation(key ratelimit.Key) *Operation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.ops[key]; o != nil {
		return o
	}
	if len(p.ops) >= p.opts.MaxOperations && !p.sweepLocked(time.Now()) {
		return p.overflow
	}
	svc := p.services[key.Space]
	if svc == nil {
		svc, _ = p.newService() // its configuration was tried in New
		p.services[key.Space] = svc
	}
	o := p.newOperation(key, svc)
	p.ops[key] = o
	svc.ops = append(svc.ops, o)
	return o
}

func (p *Pacer) newOperation(key ratelimit.Key, svc *service) *Operation {
	o := &Operation{pacer: p, key: key, svc: svc, limiter: p.opts.Rate, retries: newRetryBudget(p.opts.Budget)}
	o.line.op = o
	o.shared, _ = p.opts.Rate.(ratelimit.Feedback)
	o.adapts = ratelimit.Adapts(p.opts.Rate)
	return o
}

const (
	sweepEvery = time.Second
	restAfter  = time.Minute // an operation used within it is kept

	lowest  = 0 // the level that stays away longest
	highest = priority.Count - 1
)

// sweepLocked forgets operations at rest and reports whether there is room. A caller
// gains nothing by being forgotten: the tokens are the limiter's.
func (p *Pacer) sweepLocked(now time.Time) bool {
	if now.Sub(p.swept) < sweepEvery {
		return false
	}
	p.swept = now
	for key, o := range p.ops {
		if !o.atRest(now) {
			continue
		}
		delete(p.ops, key)
		o.svc.ops = slices.DeleteFunc(o.svc.ops, func(other *Operation) bool { return other == o })
		if len(o.svc.ops) == 0 && o.svc.pauseLeft(now, lowest) <= 0 {
			delete(p.services, key.Space)
		}
	}
	return len(p.ops) < p.opts.MaxOperations
}

// siblings returns the operations of o's service, o among them.
func (p *Pacer) siblings(o *Operation) []*Operation {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if o == p.overflow || !slices.Contains(o.svc.ops, o) {
		return []*Operation{o}
	}
	return slices.Clone(o.svc.ops)
}

// service is what all operations behind one Space share.
type service struct {
	start  time.Time
	paused [priority.Count]atomic.Int64 // by level; since start, on the monotonic clock
	slots  *queue.Slots                 // nil: calls in flight are not bounded
	ops    []*Operation                 // guarded by the Pacer
}

func (p *Pacer) newService() (*service, error) {
	s := &service{start: p.start}
	if p.opts.InFlight == nil {
		return s, nil
	}
	var err error
	s.slots, err = queue.NewSlots(queue.Config{Limit: p.opts.InFlight, MaxWait: p.opts.MaxWait, MaxWaiting: slotBound})
	return s, err
}

func (s *service) pauseLeft(now time.Time, level int) time.Duration {
	return time.Duration(s.paused[level].Load()) - now.Sub(s.start)
}

// pause keeps the levels up to the given one away from the service until t.
func (s *service) pause(t time.Time, level int) {
	end := int64(t.Sub(s.start))
	for i := range s.paused[:level+1] {
		for {
			old := s.paused[i].Load()
			if end <= old || s.paused[i].CompareAndSwap(old, end) {
				break
			}
		}
	}
}

func ticketOf(ctx context.Context, longest time.Duration) queue.Ticket {
	level, _ := priority.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	return queue.Ticket{Level: level, Deadline: deadline, MaxWait: longest}
}

func levelOf(ctx context.Context) int {
	level, _ := priority.FromContext(ctx)
	return level.Index()
}

// askSafely is ask where no caller is there to meet a panic of the limiter's: it is a
// failure of the limiter, not of the process.
func askSafely(o *Operation, now time.Time, level int) (grant Grant, refusal denial, ok bool) {
	defer func() {
		if recover() != nil {
			grant, refusal, ok = Grant{}, denial{reason: LimiterUnavailable, final: true}, false
		}
	}()
	return o.ask(context.Background(), now, level)
}
