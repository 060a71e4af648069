package admission

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// RouteOption changes what [Gate.At] does for one route.
type RouteOption func(*route)

// route is one admission point: what At was told, and the work under its caps.
type route struct {
	level   priority.Level
	cost    int
	costOf  func(*http.Request) int
	units   []unit
	slots   int
	slotsOf func(*http.Request) int
	limit   ratelimit.Limiter // nil: none of its own
	remote  bool              // limit may take its time to decide
	cap     int64             // 0: none
	streams int64             // 0: not a stream route
	timeout time.Duration     // 0: none
	pool    string
	pattern string // in Options.Routes; empty: the router knows
	exempt  bool
	id      int // for estimates of its time, see queue.Ticket.Route

	most    int64         // of the two above: the work that may be in flight; 0: no bound
	running *atomic.Int64 // counted against most; only where it is set
	counts  *counts
	also    []*route // whose bounds hold as well, for a request that may mean several
}

// Cost makes each request of the route take n tokens instead of 1. Below 1 panics.
func Cost(n int) RouteOption {
	mustAtLeastOne("Cost", n)
	return func(rt *route) { rt.cost = n }
}

// CostOf asks f for the tokens a request takes. What f returns below 1 counts as
// 1. It runs before the decision, so it must be quick and must not read the body.
func CostOf(f func(*http.Request) int) RouteOption {
	if f == nil {
		panic("admission: CostOf(nil)")
	}
	return func(rt *route) { rt.costOf = f }
}

// CostIn asks f how much of a unit a request takes: bytes, rows, the tokens of a language
// model. It is charged to the limits that count that unit ([ratelimit.Counting]), all or
// nothing with all others; a limit on that unit is not asked about requests of a route
// that does not name it. What f returns below 1 counts as 1. f runs before the decision,
// so it must be quick and must not read the body; what it has to guess is put right with
// [ChargeIn]. A nil f panics; a unit that is empty or named twice, one that no limit
// counts, and more than four units are errors of At and New.
func CostIn(name string, f func(*http.Request) int) RouteOption {
	if f == nil {
		panic(fmt.Sprintf("admission: CostIn(%q, nil)", name))
	}
	return func(rt *route) { rt.units = append(rt.units, unit{name, f}) }
}

// unit is what the requests of a route take of something else than requests.
type unit struct {
	name string
	of   func(*http.Request) int
}

// Slots makes each request of the route take n slots of its pool at once instead of 1,
// and count as n under caps: an export that runs four queries, say. It waits until n
// are free, and other work does not starve it: only what is expected to end before then
// goes first. Wider than the limit in force means the whole limit, alone. Below 1 panics.
func Slots(n int) RouteOption {
	mustAtLeastOne("Slots", n)
	return func(rt *route) { rt.slots = n }
}

// SlotsOf asks f for the slots a request takes; see [Slots]. What f returns below 1
// counts as 1. It runs before the decision, so it must be quick and must not read the
// body.
func SlotsOf(f func(*http.Request) int) RouteOption {
	if f == nil {
		panic("admission: SlotsOf(nil)")
	}
	return func(rt *route) { rt.slotsOf = f }
}

// Rate adds a limit of the route's own, decided together with the gate's: a
// refusal by either takes nothing from the other. It panics when l is nil or its
// configuration makes no sense.
func Rate(l ratelimit.Limiter) RouteOption {
	if l == nil {
		panic("admission: Rate(nil)")
	}
	if err := l.Validate(); err != nil {
		panic(fmt.Sprintf("admission: Rate: %v", err))
	}
	return func(rt *route) { rt.limit = l }
}

// Cap bounds the route's work in flight to n, on top of the pool's limit. Work
// above it is refused at once. Below 1 panics.
func Cap(n int) RouteOption {
	mustAtLeastOne("Cap", n)
	return func(rt *route) { rt.cap = int64(n) }
}

// Timeout bounds the route's work to d from arrival, waiting included, whatever
// the client asks for. Zero or less panics.
func Timeout(d time.Duration) RouteOption {
	if d <= 0 {
		panic(fmt.Sprintf("admission: Timeout(%v): must be positive", d))
	}
	return func(rt *route) { rt.timeout = d }
}

// InPool takes the route's slots from the pool of that name in Options.Pools. A name
// that is not there panics in At.
func InPool(pool string) RouteOption {
	return func(rt *route) { rt.pool = pool }
}

// Stream declares that the route's responses live long (server-sent events, a
// WebSocket): a request leaves its slot when it flushes or takes the connection
// over, and at most max of them are open at once. They never feed the law.
// Options.Deadline bounds the time until the stream begins and not its life; Timeout
// on the route, and a deadline on the request's context, bound both. Below 1 panics.
func Stream(max int) RouteOption {
	mustAtLeastOne("Stream", max)
	return func(rt *route) { rt.streams = int64(max) }
}

// Exempt lets the route through uncounted by any limit: health checks, metrics.
func Exempt() RouteOption {
	return func(rt *route) { rt.exempt = true }
}

func mustAtLeastOne(option string, n int) {
	if n < 1 {
		panic(fmt.Sprintf("admission: %s(%d): must be at least 1", option, n))
	}
}

// makeRoute builds an admission point. From prev, if any, it takes over the
// balances and the count of running work.
func makeRoute(level priority.Level, opts []RouteOption, prev *route) (*route, error) {
	if !level.Valid() {
		return nil, fmt.Errorf("invalid %v", level)
	}
	rt := &route{level: level, cost: 1, running: new(atomic.Int64), counts: new(counts)}
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("route option %d is nil", i)
		}
		o(rt)
	}
	if rt.exempt && len(opts) > 1 {
		return nil, errors.New("Exempt excludes every other route option")
	}
	if rt.cap > 0 && rt.streams > 0 {
		return nil, errors.New("Cap and Stream on one route: Stream(max) is its cap")
	}
	if err := checkUnits(rt.units); err != nil {
		return nil, err
	}
	rt.most = max(rt.cap, rt.streams)
	var balances ratelimit.Limiter
	if prev != nil {
		rt.running, balances = prev.running, prev.limit
	}
	if rt.limit != nil {
		rt.limit = ratelimit.Own(rt.limit, balances)
		rt.remote = !ratelimit.InMemory(rt.limit)
	}
	return rt, nil
}

func checkUnits(units []unit) error {
	var named ratelimit.Units
	for _, u := range units {
		if _, twice := named.Of(u.name); twice {
			return fmt.Errorf("CostIn(%q) is given twice", u.name)
		}
		if !named.Set(u.name, 1) {
			return fmt.Errorf("CostIn(%q): a route names up to four units, each by a name", u.name)
		}
	}
	return nil
}

// enter counts work that takes so many slots under the route's bound, or refuses it.
// With force it counts whatever the bound says.
func (rt *route) enter(slots int, force bool) bool {
	n := rt.width(slots)
	within := rt.running.Add(n) <= rt.most
	if !within && !force {
		rt.running.Add(-n)
		return false
	}
	for i, other := range rt.also {
		n := other.width(slots)
		if other.running.Add(n) <= other.most {
			continue
		}
		if within = false; !force {
			rt.running.Add(-rt.width(slots))
			for _, entered := range rt.also[:i+1] {
				entered.running.Add(-entered.width(slots))
			}
			return false
		}
	}
	return within
}

func (rt *route) leave(slots int) {
	rt.running.Add(-rt.width(slots))
	for _, other := range rt.also {
		other.running.Add(-other.width(slots))
	}
}

// width is what work that takes so many slots counts for: a stream is one.
func (rt *route) width(slots int) int64 {
	if rt.streams > 0 {
		return 1
	}
	return min(int64(max(slots, 1)), rt.most)
}

func (rt *route) capReason() shed.Reason {
	if rt.streams > 0 {
		return shed.StreamCap
	}
	return shed.RouteCap
}

// lowered returns the level of a request to a route whose client sent the given
// values of the priority header. A client may lower its own level, never raise it.
// Anything but one value that names a level leaves the route's.
func lowered(route priority.Level, values []string) priority.Level {
	value, ok := onlyValue(values)
	if !ok {
		return route
	}
	wish, ok := priority.Parse(value)
	if !ok {
		return route
	}
	return min(route, wish)
}

// tenantShares counts each caller's work in flight, in all pools and in each. It
// holds only callers that have some, so the slots of the pools bound it.
type tenantShares struct {
	mu      sync.Mutex
	running map[sharer]int
}

// sharer is a caller in a pool, whatever its plan.
type sharer struct {
	pool      *pool // nil: in all of them
	space, id string
}

func newTenantShares() *tenantShares { return &tenantShares{running: make(map[sharer]int)} }

// enter counts work of the caller's that takes so many slots, or refuses it when that is
// more than the most. With force it counts in any case. Work wider than the most counts
// as that. It returns how many slots it counted.
func (s *tenantShares) enter(who sharer, slots, most int, force bool) (counted int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots = min(max(slots, 1), most)
	n := s.running[who] + slots
	if ok = n <= most; !ok && !force {
		return 0, false
	}
	s.running[who] = n
	return slots, ok
}

func (s *tenantShares) leave(who sharer, slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.running[who]; n > slots {
		s.running[who] = n - slots
	} else {
		delete(s.running, who)
	}
}
