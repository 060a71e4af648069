package admission

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/internal/answer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// NoWait as a MaxWait switches the queue off: go at once or be refused.
const NoWait = queue.NoWait

// Options configure a [Gate]. They are configuration only: no field carries
// state, so the same Options may build two gates that share nothing. Zero fields
// mean the stated default; values that make no sense are errors from [New] that
// name the field.
type Options struct {
	// Name tells gates apart in metrics and logs. Empty: "default".
	Name string

	// Identify says who is asking. Nil: the client's address, as ClientIP reads it.
	Identify caller.Identify
	// ClientIP says how the client's address is read. The zero value trusts no
	// header: the address is the peer's.
	ClientIP caller.ClientIP
	// Rate limits each caller. Nil: ratelimit.Unlimited. What its plans say besides
	// a rate counts in the whole gate: a Cost multiplies that of the route, a Level
	// is the least that verified callers rank at, a Share caps the caller's work in
	// flight at that part of its pool's limit, rounded up, and a Weight says how much
	// slot time the caller gets beside others of its level while both wait.
	//
	// A limiter with a method Reason() shed.Reason names the reason of its refusals.
	Rate ratelimit.Limiter
	// Anonymous limits unverified callers, by client address. Nil:
	// the numbers of Rate.
	Anonymous ratelimit.Limiter
	// Address limits every client address before Identify runs, so that made-up
	// credentials cannot buy look-ups: its token stays spent when Identify finds
	// nothing, and comes back when a verified caller is refused by another limit.
	// Nil: ratelimit.Unlimited.
	Address ratelimit.Limiter
	// Quota is a long limit ("10,000 a day"), decided together with Rate. Unlike a
	// token of Rate, its unit is given back when capacity refuses the request. Nil:
	// ratelimit.Unlimited.
	Quota ratelimit.Limiter
	// CallerCap is the most work one caller may have in flight, in all pools,
	// whatever the Share of its plan. Zero: no cap.
	CallerCap int

	// Pool is the unnamed pool: the slots of all work that no route sends elsewhere.
	Pool Pool
	// Pools are further protected resources, each with a limit of its own, chosen
	// by the route option InPool.
	Pools map[string]Pool

	// Pressure is a second opinion: signals that something else than slots runs
	// short turn the lowest levels away, in all pools, on top of what the limits
	// do. It goes by the caller where it sheds a level in part.
	// pressure.Guard, of package shed/pressure, is one. Nil: off.
	Pressure Pressure

	// Deadline reads how long the client will wait. The zero value reads nothing;
	// a deadline on the request's context counts in any case.
	Deadline Deadline
	// Routes ranks requests by net/http mux patterns ("POST /checkout"), for
	// Handler mounted at the very edge, before any routing. What no pattern matches
	// is Normal. A request that is not spelled plainly (its path clean, unescaped and
	// without ";parameters", its host and method canonical) gains nothing: all that the
	// patterns it may be taken for ask holds (rates, caps, costs, the lowest level), and
	// it is never above Normal nor exempt. The same holds for a final slash that leads
	// to another pattern's path. At does not look at Routes.
	Routes map[string]Rule
	// HTTP says what the gate reads and writes besides its decision. The zero value is
	// fit for most services.
	HTTP HTTP
	// Shadow names layers that decide and count but let everybody through, for
	// trying numbers on real traffic. Zero: none.
	Shadow Layers
	// Observer is told of every decision. Nil: none. Several: Observers.
	Observer Observer
}

// Pressure is the configuration of a second opinion beside the limits. It is a plain
// value without state; New validates it, and errors name the field.
type Pressure interface {
	New() (shed.Gauge, error)
}

// Pool is one protected resource: a database, a render farm, an upstream.
type Pool struct {
	// Limit says how the number of slots is found. Nil: shed.Throughput{}.
	Limit shed.Limit
	// MaxWait is the longest stay in the queue. Zero: 1 s, which a deadline may
	// shorten; NoWait: no queue.
	MaxWait time.Duration
	// MaxWaiting is the most requests that wait. Zero: twice the limit in force, at
	// least 2048; what binds first is the predicted wait.
	MaxWaiting int
	// MaxWaitingBytes bounds the announced bodies of those that wait. Zero: off, since
	// the bodies of waiting requests stay unread.
	MaxWaitingBytes int64
	// CriticalReserve is the number of slots that only Critical may use.
	CriticalReserve int
}

// HTTP says how a gate speaks HTTP.
type HTTP struct {
	// LevelHeader names a header by which a client may lower its own level. Empty:
	// none.
	LevelHeader string
	// RateLimitHeaders tell clients about their limit, on every answer. Zero: none. What
	// remains is counted in tokens, of which a request takes its cost; of several limits
	// the one is told under which the fewest requests like this one may follow.
	RateLimitHeaders Headers
	// DisableResponseWrapping leaves the ResponseWriter as it is, so that no status is
	// known: everything that returns in time counts as served. Stream routes then hold
	// their slot to the end. False: responses are watched, since a fast failure is not
	// throughput.
	DisableResponseWrapping bool
	// Preflights says how CORS preflights are counted. Zero: PreflightsUncharged.
	Preflights Preflights
	// PreflightRate limits preflights by client address, unless they are counted as
	// others. Nil: 10 a second, bursts of 100.
	PreflightRate ratelimit.Limiter
	// Refuse writes the body and further headers of a refusal, in place of the problem
	// document. The status, Retry-After, Cache-Control: no-store, Headgate-Reason and the
	// fields about limits are set before, and stay unless Refuse changes them: the status
	// is that of the Rejection unless WriteHeader is called. It runs on the request's
	// goroutine and must not read the body. Nil: the problem document, or one line of text.
	Refuse func(http.ResponseWriter, *http.Request, Rejection)
}

// Preflights says how CORS preflights are counted: requests that a browser sends on
// its own account, without credentials, before it sends those of a page. A request is
// one when it is an OPTIONS with Origin and Access-Control-Request-Method, which any
// client can send as well.
type Preflights uint8

const (
	// PreflightsUncharged takes no token of a caller and makes no look-up. Beyond
	// PreflightRate the answer is 429. They take a slot, and rank at most Normal.
	PreflightsUncharged Preflights = iota
	// PreflightsAsOthers counts them as any other request.
	PreflightsAsOthers
	// PreflightsAnswered is for a CORS layer inside the gate that answers preflights by
	// itself: up to PreflightRate they pass without a slot, as exempt.
	PreflightsAnswered
)

// Layers name parts of the gate.
type Layers uint8

const (
	// ShadowRate lets through what the limits (Address, Rate, Anonymous, Quota, a
	// route's own) would refuse, and takes nothing from them for it.
	ShadowRate Layers = 1 << iota
	// ShadowCapacity lets through what the caps and slots would refuse or make
	// wait, above the limit in force, which then is advice only. No request waits.
	ShadowCapacity

	allLayers = ShadowRate | ShadowCapacity
)

// Headers says which fields tell clients about their limit, on every answer. The
// sets may be combined: IETFDraft11 | XRateLimit. Zero tells nothing.
//
// The numbers are those of the limit that refused, or else of the one nearest
// exhaustion: how much it holds when untouched, how many whole requests are left,
// and the whole seconds, rounded up, until a refused request would pass or the
// limit is untouched again. They are hints, not a reservation. An unlimited caller
// is told nothing. Both sets together cost two allocations.
type Headers uint8

const (
	// IETFDraft11 writes RateLimit-Policy and RateLimit as revision 11 of
	// draft-ietf-httpapi-ratelimit-headers has them:
	//
	//	RateLimit-Policy: "tenant";q=100;w=2
	//	RateLimit: "tenant";r=42;t=2
	//
	// The draft is still moving. A later revision will be an option of its own.
	IETFDraft11 = Headers(answer.Draft11)

	// XRateLimit writes X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset. Reset counts seconds from now; it is never an epoch.
	XRateLimit = Headers(answer.XRateLimit)
)

func (h Headers) validate() error {
	if answer.Fields(h)&^answer.AllFields != 0 {
		return fmt.Errorf("unknown bits %#x", uint8(answer.Fields(h)&^answer.AllFields))
	}
	return nil
}

// withDefaults returns a copy in which no limiter is nil.
func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "default"
	}
	o.HTTP.LevelHeader = http.CanonicalHeaderKey(o.HTTP.LevelHeader)
	o.Rate = limiterOr(o.Rate, ratelimit.Unlimited)
	o.Anonymous = limiterOr(o.Anonymous, o.Rate)
	o.Address = limiterOr(o.Address, ratelimit.Unlimited)
	o.Quota = limiterOr(o.Quota, ratelimit.Unlimited)
	if o.HTTP.PreflightRate == nil {
		o.HTTP.PreflightRate = ratelimit.PerKey(10, 100, ratelimit.Name("preflight"))
	}
	return o
}

func limiterOr(l, fallback ratelimit.Limiter) ratelimit.Limiter {
	if l == nil {
		return fallback
	}
	return l
}

// validate checks what the layers below do not see.
func (o Options) validate() error {
	var errs []error
	for _, l := range []struct {
		field string
		ratelimit.Limiter
	}{{"Rate", o.Rate}, {"Anonymous", o.Anonymous}, {"Address", o.Address}, {"Quota", o.Quota}, {"HTTP.PreflightRate", o.HTTP.PreflightRate}} {
		if l.Limiter == nil {
			continue
		}
		if err := errors.Join(l.Validate(), checkLevels(l.Limiter)); err != nil {
			errs = append(errs, fmt.Errorf("Options.%s: %w", l.field, err))
		}
	}
	if err := o.Deadline.validate(); err != nil {
		errs = append(errs, fmt.Errorf("Options.Deadline: %w", err))
	}
	if err := o.HTTP.RateLimitHeaders.validate(); err != nil {
		errs = append(errs, fmt.Errorf("Options.HTTP.RateLimitHeaders: %w", err))
	}
	if o.Shadow&^allLayers != 0 {
		errs = append(errs, fmt.Errorf("Options.Shadow = %#x: unknown layers", uint8(o.Shadow)))
	}
	if o.CallerCap < 0 {
		errs = append(errs, fmt.Errorf("Options.CallerCap = %d: must not be negative", o.CallerCap))
	}
	if o.HTTP.Preflights > PreflightsAnswered {
		errs = append(errs, fmt.Errorf("Options.HTTP.Preflights = %d: unknown value", o.HTTP.Preflights))
	}
	if _, named := o.Pools[""]; named {
		errs = append(errs, errors.New(`Options.Pools[""]: the unnamed pool is Options.Pool`))
	}
	return errors.Join(errs...)
}

func (p Pool) config() queue.Config {
	return queue.Config{Limit: p.Limit, MaxWait: p.MaxWait, MaxWaiting: p.MaxWaiting, MaxWaitingBytes: p.MaxWaitingBytes, CriticalReserve: p.CriticalReserve}
}

// checkLevels reports the plans of l whose level is none.
func checkLevels(l ratelimit.Limiter) error {
	table, ok := ratelimit.PlannerOf(l).(ratelimit.PlanTable)
	if !ok {
		return nil
	}
	var errs []error
	for name, p := range table.Plans() {
		if _, known := priority.Parse(p.Level); p.Level != "" && !known {
			errs = append(errs, fmt.Errorf("plan %q: Level %q is none (want batch, normal, high or critical)", name, p.Level))
		}
	}
	return errors.Join(errs...)
}
