package admission

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate-go/headgate/admission/internal/spelling"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// Rule is what Options.Routes says about the requests of one pattern. Make one
// with [AtLevel].
type Rule struct {
	level   priority.Level
	opts    []RouteOption
	anyCase bool
}

// AtLevel returns the rule to admit at the given level with the given options, as
// [Gate.At] would:
//
//	Routes: map[string]admission.Rule{
//		"POST /checkout": admission.AtLevel(priority.Critical),
//		"GET /export":    admission.AtLevel(priority.Batch, admission.Cost(5)),
//		"GET /healthz":   admission.AtLevel(priority.Normal, admission.Exempt()),
//	}
func AtLevel(level priority.Level, opts ...RouteOption) Rule { return Rule{level: level, opts: opts} }

// AnyCase returns the rule for a router that takes the letters of a path for the same in
// either case: a path that differs from the pattern in case only pays what the rule asks
// and is granted nothing by it.
func (r Rule) AnyCase() Rule {
	r.anyCase = true
	return r
}

// rules ranks requests before anything routed them. A rule is about a request, however
// that is spelled: where a router may read one in several ways, what any rule for one of
// them asks holds (its cost, limits, caps and time, the lowest level), and what a rule
// grants (a level above Normal, an exemption) needs the plain spelling.
type rules struct {
	mux    *http.ServeMux
	folded *http.ServeMux    // patterns in lower case, of rules for any case; nil: none
	routes map[string]*route // by pattern
	folds  map[string]*route // by pattern of folded
	hosts  bool              // some pattern names a host
	joined sync.Map          // meanings → *route
	joins  atomic.Int32
	calls  calls
}

// ruled carries a route as a handler, so that the mux can find it.
type ruled struct{ route *route }

func (ruled) ServeHTTP(http.ResponseWriter, *http.Request) {}

// newRules builds the table, with the balances of prev for patterns it has too.
func newRules(table map[string]Rule, prev *rules, fits func(*route) error) (*rules, error) {
	if len(table) == 0 {
		return nil, nil
	}
	rs := &rules{mux: http.NewServeMux(), routes: make(map[string]*route, len(table))}
	for i, pattern := range slices.Sorted(maps.Keys(table)) {
		rule := table[pattern]
		rt, err := makeRoute(rule.level, rule.opts, prev.find(pattern))
		if err == nil {
			err = fits(rt)
		}
		if err == nil {
			rt.id = 1024 - i // the highest that a queue learns the time of; those of At count from 1
			err = rs.add(pattern, rt, rule.anyCase)
		}
		if err != nil {
			return nil, fmt.Errorf("Options.Routes[%q]: %w", pattern, err)
		}
	}
	return rs, nil
}

func (rs *rules) find(pattern string) *route {
	if rs == nil {
		return nil
	}
	return rs.routes[pattern]
}

// add registers a pattern; the mux panics on one that is malformed or conflicts.
func (rs *rules) add(pattern string, rt *route, anyCase bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	rt.pattern = pattern
	rs.mux.Handle(pattern, ruled{rt})
	rs.routes[pattern] = rt
	method, rest, found := strings.Cut(pattern, " ")
	if !found {
		method, rest = "", pattern
	}
	rs.hosts = rs.hosts || !strings.HasPrefix(strings.TrimLeft(rest, " \t"), "/")
	if anyCase {
		if rs.folded == nil {
			rs.folded, rs.folds = http.NewServeMux(), make(map[string]*route)
		}
		pattern = strings.TrimSpace(method + " " + strings.ToLower(rest))
		rs.folded.Handle(pattern, ruled{rt})
		rs.folds[pattern] = rt
	}
	return nil
}

// rank returns the route of r's pattern, or fallback.
func (rs *rules) rank(r *http.Request, fallback *route) *route {
	if rs == nil {
		return fallback
	}
	sent, exact := match(rs.mux, rs.routes, r)
	plain := exact && spelling.Plain(r, rs.hosts)
	if plain && !spelling.Slashed(r) && rs.onlyOne(sent, r) {
		return cmp.Or(sent, fallback)
	}
	var m meanings
	spelling.Each(r, rs.hosts, func(r *http.Request) {
		m.find(rs.mux, rs.routes, r)
		if rs.folded != nil {
			path, raw := r.URL.Path, r.URL.RawPath
			r.URL.Path, r.URL.RawPath = strings.ToLower(path), strings.ToLower(raw)
			m.find(rs.folded, rs.folds, r)
			r.URL.Path, r.URL.RawPath = path, raw
		}
	})
	m.add(sent)
	switch {
	case m[0] == nil:
		return fallback
	case plain && sent == m[0] && m[1] == nil:
		return sent
	}
	return rs.join(m)
}

// onlyOne reports whether a request that is spelled plainly, and has route sent, has no
// other by the rules for any case.
func (rs *rules) onlyOne(sent *route, r *http.Request) bool {
	if rs.folded == nil {
		return true
	}
	if r.URL.Path != strings.ToLower(r.URL.Path) {
		return false
	}
	folded, _ := match(rs.folded, rs.folds, r)
	return folded == nil || folded == sent
}

// match returns the route of r's pattern. Where only a final slash is missing the mux
// would redirect, and other routers serve: the route is that of the path with the slash,
// and not exact.
func match(mux *http.ServeMux, routes map[string]*route, r *http.Request) (rt *route, exact bool) {
	h, pattern := mux.Handler(r)
	if m, ok := h.(ruled); ok {
		return m.route, true
	}
	rt = routes[pattern]
	return rt, rt == nil
}

// meanings are the routes that the readings of one request lead to. There are few: the
// last one stands for those beyond.
type meanings [8]*route

func (m *meanings) find(mux *http.ServeMux, routes map[string]*route, r *http.Request) {
	rt, _ := match(mux, routes, r)
	m.add(rt)
}

func (m *meanings) add(rt *route) {
	for i := range m {
		if rt == nil || m[i] == rt {
			return
		}
		if m[i] == nil {
			m[i] = rt
			return
		}
	}
}

// maxJoins bounds how many joint routes are remembered; more are made when needed.
const maxJoins = 1024

// join returns the route that asks what any of m asks and grants nothing.
func (rs *rules) join(m meanings) *route {
	if rt, ok := rs.joined.Load(m); ok {
		return rt.(*route)
	}
	rt := m.strictest()
	if rs.joins.Add(1) <= maxJoins {
		rs.joined.Store(m, rt)
	}
	return rt
}

// strictest joins the routes of m. Pool and estimates are the first's, as most routers read.
func (m *meanings) strictest() *route {
	h := *m[0]
	h.level, h.exempt, h.also = min(h.level, priority.Normal), false, nil
	limits := make([]ratelimit.Limiter, 0, len(m))
	for _, rt := range m {
		if rt == nil {
			break
		}
		h.level, h.cost, h.remote = min(h.level, rt.level), max(h.cost, rt.cost), h.remote || rt.remote
		if rt.timeout > 0 && (h.timeout == 0 || rt.timeout < h.timeout) {
			h.timeout = rt.timeout
		}
		h.streams = min(h.streams, rt.streams) // a stream only if all are
		h.slots = max(h.slots, rt.slots)
		if rt.limit != nil {
			limits = append(limits, rt.limit)
		}
		if rt.most > 0 {
			h.also = append(h.also, rt)
		}
	}
	h.limit = jointly(limits)
	h.units = m.units()
	h.costOf = m.most(h.cost, func(rt *route) func(*http.Request) int { return rt.costOf })
	h.slotsOf = m.most(h.slots, func(rt *route) func(*http.Request) int { return rt.slotsOf })
	if len(h.also) > 0 {
		h.most, h.running, h.also = h.also[0].most, h.also[0].running, h.also[1:]
	}
	return &h
}

// units are those that any of m names, each with the most that any asks.
func (m *meanings) units() (all []unit) {
	for _, rt := range m {
		if rt == nil {
			break
		}
		for _, u := range rt.units {
			i := slices.IndexFunc(all, func(known unit) bool { return known.name == u.name })
			if i < 0 {
				all = append(all, u)
			} else {
				a, b := all[i].of, u.of
				all[i].of = func(r *http.Request) int { return max(a(r), b(r)) }
			}
		}
	}
	return all
}

// jointly is one limit made of several; of more than one decision can have, the first.
func jointly(limits []ratelimit.Limiter) ratelimit.Limiter {
	switch len(limits) {
	case 0:
		return nil
	case 1:
		return limits[0]
	}
	all := ratelimit.All(limits...)
	for n := len(limits); n > 1 && all.Policy(ratelimit.Key{}) == (ratelimit.Policy{}); n-- {
		all = ratelimit.All(limits[:n-1]...)
	}
	return all
}

// most returns the most that any of m asks of a request, at least least, where what of
// (its cost, its slots) depends on the request.
func (m *meanings) most(least int, of func(*route) func(*http.Request) int) func(*http.Request) int {
	var asked []func(*http.Request) int
	for _, rt := range m {
		if rt == nil {
			break
		}
		if f := of(rt); f != nil {
			asked = append(asked, f)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return func(r *http.Request) int {
		most := least
		for _, f := range asked {
			most = max(most, f(r))
		}
		return most
	}
}
