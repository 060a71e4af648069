package admission

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/internal/answer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Ticket is what a piece of work says about itself at the gate.
type Ticket struct {
	Caller   caller.Caller  // who asks; one that is not verified is limited by Options.Anonymous
	Level    priority.Level // who goes first, were it not for the caller's own rank and plan
	Cost     int            // tokens it takes, times the factor of the caller's plan; below 1 counts as 1
	Units    map[string]int // how much of other units it takes, for limits that count them; below 1 counts as 1
	Slots    int            // how many slots it takes at once; below 1 counts as 1, more than there are as the whole limit, alone
	Deadline time.Time      // when its answer becomes worthless; zero: the context's
	MaxWait  time.Duration  // longest stay in the queue; zero: the pool's, which is also the most; NoWait: none
	Pool     string         // which pool its slot comes from; a name that is not there is the unnamed one
	Bytes    int64          // announced size of its body; -1: unknown
}

// Permit is a slot held. It must be given back with [Permit.Release]; a copy is
// the same permit. The zero Permit, which a nil gate gives, holds nothing.
type Permit struct {
	pool  *pool
	slot  queue.Grant
	visit *visit // only to be touched while the slot is held: afterwards it belongs to other work
	work  *work  // of AdmitRequest, which then decides; else nil
}

// Release gives the slot back and says how the work ended. Only the first call on
// a permit counts, whichever copy it is made on. It never blocks.
func (p Permit) Release(o shed.Outcome) {
	switch {
	case p.work != nil:
		p.work.release(o)
		return
	case p.pool == nil:
		return
	}
	if held, live := p.pool.slots.Release(p.slot, o); live {
		p.visit.ended(o, held, false)
	}
}

// Streaming says that the answer of a request which [Gate.AdmitRequest] admitted has
// begun: on a route declared [Stream] the request leaves its slot, for the cap of the
// route, which it leaves with Release. Elsewhere, and at later calls, it does nothing.
func (p Permit) Streaming() {
	if p.work != nil {
		p.work.begun(shed.Served, false)
	}
}

// Waited returns how long the work stood in the queue.
func (p Permit) Waited() time.Duration { return p.slot.Waited }

// Charge says what the work cost after all, in place of the cost it was admitted
// at: more is charged even if the balance goes into debt, less is given back. The
// factor of the caller's plan applies to it, as it did to the first cost. It
// reaches every limit that the work was admitted by, and counts once: the
// first call reports true, later ones change nothing and report false, as does one
// after Release. A cost below zero counts as zero. It must not run while another
// goroutine releases the permit.
func (p Permit) Charge(cost int) bool {
	if p.work != nil {
		return p.work.charge(cost)
	}
	if p.pool == nil || !p.pool.slots.Once(p.slot) {
		return false
	}
	p.visit.charge(cost)
	return true
}

func (v *visit) charge(cost int) {
	v.taken.adjust(time.Now(), "", v.price(max(cost, 0)))
}

// ChargeIn is [Permit.Charge] for a unit that the work named: it says how much of it the
// work took after all. It counts once for each unit, and reports false for one that the
// work did not name. The factor of a plan is about requests and not applied.
func (p Permit) ChargeIn(unit string, n int) bool {
	if p.work != nil {
		return p.work.chargeIn(unit, n)
	}
	return p.pool != nil && p.pool.slots.Held(p.slot) && p.visit.chargeIn(unit, n)
}

// unitBill is what a visit takes of units. It is made for the visits that name some.
type unitBill struct {
	mu      sync.Mutex
	taken   ratelimit.Units
	settled []string
}

// take names a unit; past the most there may be, it is not counted.
func (v *visit) take(unit string, n int) {
	if v.units == nil {
		v.units = new(unitBill)
	}
	v.units.taken.Set(unit, n)
}

func (v *visit) chargeIn(unit string, n int) bool {
	if v.units == nil || !v.units.settle(unit) {
		return false
	}
	v.taken.adjust(time.Now(), unit, max(n, 0))
	return true
}

// settle reports true once for each unit that was taken.
func (b *unitBill) settle(unit string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, named := b.taken.Of(unit); !named || slices.Contains(b.settled, unit) {
		return false
	}
	b.settled = append(b.settled, unit)
	return true
}

// Charge says what the request that ctx belongs to cost after all; see
// [Permit.Charge]. A handler may call it at any time until it returns, a stream's
// at its end. Outside of a request that a gate admitted it reports false. Behind
// several gates it speaks to the innermost.
func Charge(ctx context.Context, cost int) bool {
	r, _ := ctx.Value(anyRequestKey{}).(*work)
	return r != nil && r.charge(cost)
}

// ChargeIn says how much of a unit the request that ctx belongs to took after all, in
// place of what its route named with [CostIn]; see [Permit.ChargeIn] and [Charge].
func ChargeIn(ctx context.Context, unit string, n int) bool {
	r, _ := ctx.Value(anyRequestKey{}).(*work)
	return r != nil && r.chargeIn(unit, n)
}

// AdmitRequest decides about a request that another protocol brings, as [Gate.Handler]
// does about those of HTTP: Options.Routes, Identify, Deadline and the rest read r, which
// is not kept. It blocks while the request waits for its slot. The context it returns is
// the one to work under: it has the deadline, and [FromContext] and [Charge] know it. The
// permit must be released, with the outcome of the work; where the deadline has passed or
// the client has left by then, that is the outcome. A refusal is a *[Rejection], for the
// caller to answer. A nil gate, an exempt route, and a request that this gate has
// admitted before give r's own context and a Permit that holds nothing. It allocates the
// context, and nothing else.
func (g *Gate) AdmitRequest(r *http.Request) (context.Context, Permit, error) {
	outer := r.Context()
	if g == nil {
		return outer, Permit{}, nil
	}
	if met, _ := outer.Value(requestKey{g}).(*work); met != nil && met.running() {
		return outer, Permit{}, nil
	}
	rt := g.config.Load().rules.ofCall(r, g.edge)
	if rt.exempt {
		exempt(g, rt, r.Pattern)
		return outer, Permit{}, nil
	}
	x := exchange{visit: arrive(g, rt), r: r}
	switch {
	case !x.read():
	case x.uncounted():
		x.leave()
		exempt(g, rt, r.Pattern)
		return outer, Permit{}, nil
	case x.admit(outer):
		w := new(work)
		x.begin(w)
		return w, Permit{pool: x.at, slot: x.slot, visit: x.visit, work: w}, nil
	}
	x.refused()
	rej := x.rejection()
	x.tellRefused()
	return outer, Permit{}, rej
}

// The most paths of calls that are remembered, and the longest.
const (
	maxCalls    = 1024
	maxCallPath = 256
)

// calls remember the routes of paths. A service has few, and each is one string, where a
// path of HTTP is one of many.
type calls struct {
	mu     sync.Mutex // guards changes
	routes atomic.Pointer[map[string]*route]
}

// ofCall is rank for requests that all say POST, with a path that means one thing.
func (rs *rules) ofCall(r *http.Request, fallback *route) *route {
	if rs == nil || rs.hosts || r.Method != http.MethodPost || r.URL.RawPath != "" {
		return rs.rank(r, fallback)
	}
	if known := rs.calls.routes.Load(); known != nil {
		if rt, ok := (*known)[r.URL.Path]; ok {
			return cmp.Or(rt, fallback)
		}
	}
	rt := rs.rank(r, nil)
	rs.calls.add(r.URL.Path, rt)
	return cmp.Or(rt, fallback)
}

func (c *calls) add(path string, rt *route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	more := map[string]*route{}
	if known := c.routes.Load(); known != nil {
		if len(*known) >= maxCalls {
			return
		}
		more = maps.Clone(*known)
	}
	if len(path) <= maxCallPath {
		more[path] = rt
		c.routes.Store(&more)
	}
}

// Rejection is a refusal: why, until when, and by which limit. It is an error;
// errors.Is finds its Reason in it (errors.Is(err, shed.QueueFull)) and errors.As
// finds the Rejection itself. It is also an [http.Handler] that answers a request
// with the refusal, for code that calls Gate.Admit by hand.
type Rejection struct {
	Reason     shed.Reason
	RetryAfter time.Duration // until another try makes sense; rounded up to whole seconds, at least 1, on the wire
	Policy     string        // name of the limit that refused; empty when it was no limit
}

func (v *visit) rejection() *Rejection {
	return &Rejection{Reason: v.reason, RetryAfter: v.retryAfter, Policy: v.broken}
}

// Error says which reason, which limit and when to come back. It is meant for the
// service's own log; clients never see it.
func (e *Rejection) Error() string {
	text := e.Reason.Error()
	if e.Policy != "" {
		text += " by " + strconv.Quote(e.Policy)
	}
	if seconds := answer.Refusal(*e).Seconds(); seconds > 0 {
		text += ", retry after " + strconv.FormatInt(seconds, 10) + " s"
	}
	return text
}

// Unwrap returns the Reason.
func (e *Rejection) Unwrap() error { return e.Reason }

// Status returns the HTTP status of the refusal: 429 when the caller is over a
// limit of its own, 503 when the service cannot take the work, 403 when the
// identify step refused the caller (401 would need a challenge, and only the
// service knows its scheme). A client that is gone gets 503 as well: if
// its connection is open after all, silence would look like an empty 200.
func (e *Rejection) Status() int { return answer.Refusal(*e).Status() }

// ServeHTTP answers r with the refusal: the status, Retry-After where waiting
// helps, Cache-Control: no-store, Headgate-Reason, and a body of
// application/problem+json where the client accepts it, else one line of text.
// HEAD gets the headers alone.
//
// Headers set by outer handlers stay, except those it sets itself and those that
// cannot be true of a refusal: about another body (Content-Encoding, ETag, …) and to
// caches (CDN-Cache-Control, Surrogate-Control, …). The request's body is not read. On HTTP/1 the connection is closed when
// the server is draining and when the body is too long, or of unknown length, to
// be worth reading past; otherwise it serves the next request.
func (e *Rejection) ServeHTTP(w http.ResponseWriter, r *http.Request) { answer.Refusal(*e).Write(w, r) }

var (
	_ error        = (*Rejection)(nil)
	_ http.Handler = (*Rejection)(nil)
)
