package admission

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/admission/internal/answer"
	"github.com/headgate-go/headgate/admission/internal/writer"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// exchange is a visit that came by HTTP, with its request and the writer of its
// answer.
type exchange struct {
	*visit
	w http.ResponseWriter
	r *http.Request
}

// serve is the middleware: read the request, decide, run or refuse.
func serve(g *Gate, w http.ResponseWriter, r *http.Request, rt *route, next http.Handler) {
	if met, _ := r.Context().Value(requestKey{g}).(*work); met != nil && met.running() {
		next.ServeHTTP(w, r) // decided where the request met this gate first
		return
	}
	if rt.exempt {
		exempt(g, rt, r.Pattern)
		next.ServeHTTP(w, r)
		return
	}
	x := exchange{arrive(g, rt), w, r}
	switch {
	case !x.read():
	case x.uncounted():
		x.leave()
		exempt(g, rt, r.Pattern)
		next.ServeHTTP(w, r)
		return
	case x.admit(r.Context()):
		x.run(next)
		return
	}
	x.turnAway()
}

// turnAway answers a refusal and tells of it, also when Options.HTTP.Refuse panics.
func (x exchange) turnAway() {
	x.refused()
	answered := false
	defer func() { x.tellAfter(answered) }()
	x.answer()
	answered = true
}

// tellAfter tells the observer last of all. If that panics, the answer goes out before
// the panic goes up: net/http drops what it has not sent by then.
func (x exchange) tellAfter(answered bool) {
	unsent := answered
	defer func() {
		if unsent {
			_ = http.NewResponseController(x.w).Flush()
		}
	}()
	x.tellRefused()
	unsent = false
}

// exempt counts a request to an exempt route.
func exempt(g *Gate, rt *route, pattern string) {
	pattern = cmp.Or(rt.pattern, pattern)
	g.visited.Of(pattern).Refused(rt.level, shed.Exempt)
	g.tally.visits[rt.level.Index()][shed.Exempt].Add(1)
	if c := g.config.Load(); c.Observer != nil {
		c.Observer.Observe(Event{Gate: c.Name, Route: pattern, Level: rt.level, Reason: shed.Exempt})
	}
}

// read fills the ticket from the request, or refuses a caller that the identify
// step turns away. To identify may take any time, and so may the cost, so the clock is
// read again after them: what follows is decided by the time that it is decided at.
func (x exchange) read() bool {
	rt := x.route
	x.pattern = cmp.Or(rt.pattern, x.r.Pattern)
	x.Pool, x.Cost, x.Slots, x.Bytes = rt.pool, rt.cost, rt.slots, x.r.ContentLength
	x.Level, x.free = rt.level, x.HTTP.Preflights != PreflightsAsOthers && preflight(x.r)
	x.Deadline, x.answerBy = x.deadline(), x.sendable()
	known := x.identify()
	if known && rt.costOf != nil {
		x.Cost = rt.costOf(x.r)
	}
	for _, u := range rt.units {
		if known {
			x.take(u.name, u.of(x.r))
		}
	}
	if known && rt.slotsOf != nil {
		x.Slots = rt.slotsOf(x.r)
	}
	x.tick()
	if !known {
		return false
	}
	x.Level = x.rank()
	return true
}

// identify finds out who asks. The address is limited first, so that made-up
// credentials cannot buy look-ups; unknown callers are charged to it too. Preflights
// have a limit of their own there.
func (x exchange) identify() bool {
	limit := x.Address
	if x.free {
		limit = x.HTTP.PreflightRate
	}
	if limit != ratelimit.Unlimited {
		x.arrival()
		x.taken.address = x.addresses.Key(x.r)
		if !x.withinAddress(x.r.Context(), limit) {
			x.Caller = caller.OfAddress(x.taken.address)
			return false
		}
	}
	c, err := x.caller()
	if err != nil {
		return x.unidentified(err)
	}
	if !c.Verified {
		c = caller.OfAddress(x.addresses.Key(x.r))
	}
	x.Caller = c
	return true
}

// caller asks who it is. A browser sends no credentials with a preflight, and one
// that carries some must not buy a look-up for nothing.
func (x exchange) caller() (caller.Caller, error) {
	if x.free {
		return caller.Caller{}, nil
	}
	return x.Identify(x.r)
}

// unidentified refuses as the identify step says. The address has paid for it.
func (x exchange) unidentified(err error) bool {
	if rej := (*Rejection)(nil); errors.As(err, &rej) && rej != nil && refusal(rej.Reason) {
		x.retryAfter, x.broken = rej.RetryAfter, rej.Policy
		return x.refuse(rej.Reason)
	}
	return x.refuse(shed.Unidentified)
}

// refusal reports whether r is one of the reasons to refuse.
func refusal(r shed.Reason) bool { return r.Refused() && int(r) < shed.ReasonCount }

// rank is the route's level, raised or lowered by the rank of a verified caller, and
// lowered by the client if it wishes.
func (x exchange) rank() priority.Level {
	level := x.asSold(x.route.level)
	if x.free {
		level = min(level, priority.Normal)
	}
	if x.HTTP.LevelHeader != "" {
		level = lowered(level, x.r.Header[x.HTTP.LevelHeader])
	}
	return level
}

// uncounted reports whether the request is a preflight that passes without a slot.
func (x exchange) uncounted() bool { return x.free && x.HTTP.Preflights == PreflightsAnswered }

// preflight reports whether r is shaped like a CORS preflight.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// answer writes the refusal.
func (x exchange) answer() {
	x.advertise()
	rej := Rejection{Reason: x.reason, RetryAfter: x.retryAfter, Policy: x.broken}
	if own := x.HTTP.Refuse; own != nil {
		answer.Refusal(rej).WriteWith(x.w, x.r, func(w http.ResponseWriter, r *http.Request) { own(w, r, rej) })
		return
	}
	answer.Refusal(rej).Write(x.w, x.r)
}

// advertise tells the client about the limit that refused it, or about the one
// nearest exhaustion. What is in shadow is not told: nothing enforces it.
func (x exchange) advertise() {
	if x.HTTP.RateLimitHeaders == 0 || x.limit.by == nil || x.Shadow&ShadowRate != 0 {
		return
	}
	key := x.taken.key
	if x.limit.which == byAddress {
		key = addressKey(x.taken.address)
	}
	p := policyNamed(x.limit.policy, x.limit.by, key)
	answer.Fields(x.HTTP.RateLimitHeaders).Write(x.w.Header(), p, x.limit.left, x.limit.reset)
}

// opensIn reports whether the visit opens a stream, and by when it must have begun.
func (x exchange) opensIn() (time.Time, bool) {
	return x.Deadline, x.route.streams > 0 && !x.HTTP.DisableResponseWrapping && !x.Deadline.IsZero()
}

// end is when the work must be over; zero: no time is set. A stream's client waits
// for the beginning of the answer, not for its end (see opening), so of what is
// known only the route's own timeout ends one.
func (x exchange) end() time.Time {
	switch {
	case x.route.streams == 0:
		return x.Deadline
	case x.route.timeout > 0:
		return x.arrival().Add(x.route.timeout)
	}
	return time.Time{}
}

// begin makes w the context of an admitted request.
func (x exchange) begin(w *work) {
	outer := x.r.Context()
	w.Context, w.gate, w.visit, w.caller, w.level, w.waited = outer, x.gate, x.visit, x.Caller, x.Level, x.slot.Waited
	if by, bounded := x.opensIn(); bounded {
		w.Context = open(outer, by)
	}
	end := x.end()
	if ctx, ok := outer.Deadline(); !ok || end.Before(ctx) {
		w.deadline = end
	}
}

// run serves an admitted request. The deferred finish sees a panic without
// touching it.
func (x exchange) run(next http.Handler) {
	r, w := x.r, x.w
	req := &request{
		Response: writer.Response{ResponseWriter: w, HasBody: r.ProtoMajor == 1 && hasBody(r)},
	}
	req.Owner, req.told = req, answer.Fields(x.HTTP.RateLimitHeaders)
	x.begin(&req.work)
	req.inner = *r.WithContext(req) // inlined, so that the copy it makes stays on the stack
	inner, returned := &req.inner, false
	defer func() {
		if x.pattern == "" { // a router inside has matched it
			x.pattern = inner.Pattern
		}
		req.finish(returned)
	}()
	if req.Touched = x.HTTP.DisableResponseWrapping; !req.Touched {
		w = req.View()
	}
	x.advertise()
	next.ServeHTTP(w, inner)
	returned = true
	handBack(r, inner)
	req.Returned()
}

// handBack tells the outer request what others would have read from it, had the
// handler been given it and not a copy: net/http removes the files of its multipart
// form, and logs and traces take its pattern.
func handBack(outer, inner *http.Request) {
	outer.Pattern = inner.Pattern
	if outer.MultipartForm == nil {
		outer.MultipartForm = inner.MultipartForm
	}
}

// policyNamed returns the policy of that name of l, which may be made of several.
func policyNamed(name string, l ratelimit.Limiter, key ratelimit.Key) ratelimit.Policy {
	if _, several := l.(ratelimit.Lister); several {
		var room [6]ratelimit.Policy // as many as All takes; more would be allocated
		for _, p := range ratelimit.AppendPolicies(room[:0], l, key) {
			if p.Name == name {
				return p
			}
		}
	}
	return l.Policy(key)
}
