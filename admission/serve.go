package admission

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// serve is the middleware: read the request, decide, run or refuse.
func (g *Gate) serve(w http.ResponseWriter, r *http.Request, rt *route, next http.Handler) {
	if met, _ := r.Context().Value(requestKey{g}).(*request); met != nil {
		next.ServeHTTP(w, r) // decided where the request met this gate first
		return
	}
	if rt.exempt {
		g.exempt(rt)
		next.ServeHTTP(w, r)
		return
	}
	v := g.arrive(rt)
	if !v.read(r) || !v.admit(r.Context()) {
		v.refused()
		v.answer(w, r)
		v.leave()
		return
	}
	v.run(w, r, next)
}

func (g *Gate) exempt(rt *route) {
	g.tally.visits[rt.level.Index()][shed.Exempt].Add(1)
	if c := g.config.Load(); c.Observer != nil {
		c.Observer.Observe(Event{Gate: c.Name, Level: rt.level, Reason: shed.Exempt})
	}
}

// read fills the ticket from the request, or refuses a caller that the identify
// step turns away.
func (v *visit) read(r *http.Request) bool {
	rt := v.route
	v.Level, v.Pool, v.Cost, v.Bytes = rt.level, rt.pool, rt.cost, r.ContentLength
	if rt.costOf != nil {
		v.Cost = rt.costOf(r)
	}
	v.free = preflight(r)
	v.Deadline = v.deadline(r)
	v.MaxWait = v.answerable(r)
	if !v.identify(r) {
		return false
	}
	v.Level = v.rank(r)
	return true
}

// deadline is the earliest of the client's, the context's and the route's.
func (v *visit) deadline(r *http.Request) time.Time {
	at, limited := v.config.Deadline.at(r, v.now)
	if t := v.route.timeout; t > 0 {
		if own := v.now.Add(t); !limited || own.Before(at) {
			return own
		}
	}
	return at
}

// answerMargin is kept of the server's write timeout for the refusal itself.
const answerMargin = 50 * time.Millisecond

// answerable bounds the wait so that a refusal can still be written before the
// server's write timeout cuts the connection. Zero: no bound.
func (v *visit) answerable(r *http.Request) time.Duration {
	srv, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	if srv == nil || srv.WriteTimeout <= 0 {
		return 0
	}
	return max(srv.WriteTimeout-max(answerMargin, srv.WriteTimeout/10), time.Millisecond)
}

// identify finds out who asks. The address is limited first, so that made-up
// credentials cannot buy look-ups; it is also whom unknown callers are billed to.
func (v *visit) identify(r *http.Request) bool {
	ctx := r.Context()
	if v.Address != ratelimit.Unlimited && !v.free {
		v.taken.address = v.addresses.Key(r)
		if !v.withinAddress(ctx) {
			v.Caller = Caller{Key: v.taken.address, Space: spaceAddr}
			return false
		}
	}
	c, err := v.tenant(r)
	if err != nil {
		return v.unidentified(err)
	}
	if !c.Verified {
		c = Caller{Key: v.addresses.Key(r), Space: spaceAddr}
	}
	v.Caller = c
	return true
}

// tenant asks who it is. A browser sends no credentials with a preflight, and one
// that carries some must not buy a look-up for nothing.
func (v *visit) tenant(r *http.Request) (Caller, error) {
	if v.free {
		return Caller{}, nil
	}
	return v.Identify(r)
}

// unidentified refuses as the identify step says. The address has paid for it.
func (v *visit) unidentified(err error) bool {
	if rej := (*Rejection)(nil); errors.As(err, &rej) && rej.Reason.Refused() && int(rej.Reason) < shed.ReasonCount {
		v.retryAfter, v.broken = rej.RetryAfter, rej.Policy
		return v.refuse(rej.Reason)
	}
	return v.refuse(shed.Unidentified)
}

// rank is the route's level, raised or lowered by what vouches for the caller, and
// lowered by the client if it wishes.
func (v *visit) rank(r *http.Request) priority.Level {
	level := v.asSold(v.route.level)
	if v.LevelHeader != "" {
		level = lowered(level, r.Header[v.LevelHeader])
	}
	return level
}

// answer writes the refusal.
func (v *visit) answer(w http.ResponseWriter, r *http.Request) {
	v.advertise(w.Header())
	rej := Rejection{Reason: v.reason, RetryAfter: v.retryAfter, Policy: v.broken}
	rej.write(w, r)
}

// preflight reports whether r is a CORS preflight. A browser sends it on its own
// account, so it is not charged; it still needs a slot.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions &&
		r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// end is when the work must be over; zero: no time is set. A stream's client waits
// for the beginning of the answer, not for its end (see opening), so of what is
// known only the route's own timeout ends one.
func (v *visit) end() time.Time {
	switch {
	case v.route.streams == 0:
		return v.Deadline
	case v.route.timeout > 0:
		return v.now.Add(v.route.timeout)
	}
	return time.Time{}
}

// run serves an admitted request. The deferred finish sees a panic without
// touching it.
func (v *visit) run(w http.ResponseWriter, r *http.Request, next http.Handler) {
	req := &request{
		Context: r.Context(), response: response{ResponseWriter: w, told: v.Headers}, gate: v.gate, visit: v,
		caller: v.Caller, level: v.Level, waited: v.slot.Waited,
	}
	if by, bounded := v.opensIn(); bounded {
		req.Context = open(r.Context(), by)
	}
	end := v.end()
	if ctx, ok := r.Context().Deadline(); !ok || end.Before(ctx) {
		req.deadline = end
	}
	returned := false
	defer func() { req.finish(returned) }()
	if v.Outcomes == Watch {
		w = req.writer()
	}
	v.advertise(w.Header())
	inner := r.WithContext(req)
	next.ServeHTTP(w, inner)
	returned = true
	handBack(r, inner)
	if req.status == 0 && !req.hijacked { // net/http sends the header now
		req.told.once(w.Header())
	}
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

var _ context.Context = (*request)(nil)
