package admission

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
)

// Rule is what Options.Routes says about the requests of one pattern. Make one
// with [AtLevel].
type Rule struct {
	level priority.Level
	opts  []RouteOption
}

// AtLevel returns the rule to admit at the given level with the given options, as
// [Gate.At] would:
//
//	Routes: map[string]admission.Rule{
//		"POST /checkout": admission.AtLevel(priority.Critical),
//		"GET /export":    admission.AtLevel(priority.Batch, admission.Cost(5)),
//		"GET /healthz":   admission.AtLevel(priority.Normal, admission.Exempt()),
//	}
func AtLevel(level priority.Level, opts ...RouteOption) Rule { return Rule{level, opts} }

// rules ranks requests before anything routed them.
type rules struct {
	mux    *http.ServeMux
	routes map[string]*route
}

// ruled is a route in the clothes of a handler, so that the mux can find it.
type ruled struct{ route, humble *route }

func (ruled) ServeHTTP(http.ResponseWriter, *http.Request) {}

// newRules builds the table, with the balances of prev for patterns it has too.
func newRules(table map[string]Rule, prev *rules, pools func(string) *pool) (*rules, error) {
	if len(table) == 0 {
		return nil, nil
	}
	rs := &rules{mux: http.NewServeMux(), routes: make(map[string]*route, len(table))}
	for i, pattern := range slices.Sorted(maps.Keys(table)) {
		rule := table[pattern]
		rt, err := makeRoute(rule.level, rule.opts, prev.find(pattern))
		if err == nil && pools(rt.pool) == nil {
			err = fmt.Errorf("InPool(%q): no such pool", rt.pool)
		}
		if err == nil {
			rt.id = queue.MostRoutes - i // those of At count from 1
			err = rs.add(pattern, rt)
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
func (rs *rules) add(pattern string, rt *route) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	rt.pattern = pattern
	rs.mux.Handle(pattern, ruled{rt, rt.humbled()})
	rs.routes[pattern] = rt
	return nil
}

// rank returns the route of r's pattern, or fallback.
func (rs *rules) rank(r *http.Request, fallback *route) *route {
	if rs == nil {
		return fallback
	}
	m, ok := rs.match(r)
	if spelledPlainly(r.URL) {
		if ok {
			return m.route
		}
		return fallback
	}
	if !ok {
		m, ok = rs.match(respelled(r))
	}
	if ok {
		return m.humble
	}
	return fallback
}

func (rs *rules) match(r *http.Request) (ruled, bool) {
	h, _ := rs.mux.Handler(r)
	m, ok := h.(ruled)
	return m, ok
}

// humbled is the route for a path with another spelling. Routers differ in what
// they make of one, so what the rule asks holds (its cost, limits and caps, a level
// below Normal), and what it grants does not.
func (rt *route) humbled() *route {
	h := *rt
	h.level, h.exempt = min(h.level, priority.Normal), false
	return &h
}

// spelledPlainly reports whether the path has its one canonical spelling: clean,
// and with nothing escaped that need not be.
func spelledPlainly(u *url.URL) bool {
	return u.RawPath == "" && u.Path == cleanPath(u.Path)
}

// respelled returns r as a router reads it that cleans and unescapes paths.
func respelled(r *http.Request) *http.Request {
	plain := *r
	plain.URL = &url.URL{Host: r.URL.Host, Path: cleanPath(r.URL.Path)}
	return &plain
}

// cleanPath is path.Clean of a rooted path, a final slash kept.
func cleanPath(p string) string {
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	clean := path.Clean(p)
	if p[len(p)-1] != '/' || clean == "/" {
		return clean
	}
	if len(p) == len(clean)+1 && strings.HasPrefix(p, clean) {
		return p // nothing to allocate
	}
	return clean + "/"
}
