package admission

import (
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"

	"github.com/headgate-go/headgate/priority"
)

// Rule is what Options.Routes says about the requests of one pattern. Make one
// with [As].
type Rule struct {
	level priority.Level
	opts  []RouteOption
}

// As returns the rule to admit at the given level with the given options, as
// [Gate.At] would:
//
//	Routes: map[string]admission.Rule{
//		"POST /checkout": admission.As(priority.Critical),
//		"GET /export":    admission.As(priority.Batch, admission.Cost(5)),
//		"GET /healthz":   admission.As(priority.Normal, admission.Exempt()),
//	}
func As(level priority.Level, opts ...RouteOption) Rule { return Rule{level, opts} }

// rules ranks requests before anything routed them.
type rules struct {
	mux    *http.ServeMux
	routes map[string]*route
}

// ruled is a route in the clothes of a handler, so that the mux can find it.
type ruled struct{ *route }

func (ruled) ServeHTTP(http.ResponseWriter, *http.Request) {}

// newRules builds the table, with the balances of prev for patterns it has too.
func newRules(table map[string]Rule, prev *rules, pools func(string) *pool) (*rules, error) {
	if len(table) == 0 {
		return nil, nil
	}
	rs := &rules{mux: http.NewServeMux(), routes: make(map[string]*route, len(table))}
	for _, pattern := range slices.Sorted(maps.Keys(table)) {
		rule := table[pattern]
		rt, err := makeRoute(rule.level, rule.opts, prev.find(pattern))
		if err == nil && pools(rt.pool) == nil {
			err = fmt.Errorf("In(%q): no such pool", rt.pool)
		}
		if err == nil {
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
	rs.mux.Handle(pattern, ruled{rt})
	rs.routes[pattern] = rt
	return nil
}

// rank returns the route of r's pattern, or fallback.
func (rs *rules) rank(r *http.Request, fallback *route) *route {
	if rs == nil || !spelledPlainly(r) {
		return fallback
	}
	h, _ := rs.mux.Handler(r)
	if rt, ok := h.(ruled); ok {
		return rt.route
	}
	return fallback
}

// spelledPlainly reports whether the path has its one canonical spelling. Routers
// differ in what they make of any other, so no rank may hang on it.
func spelledPlainly(r *http.Request) bool {
	p := r.URL.Path
	if r.URL.RawPath != "" || p == "" || p[0] != '/' {
		return false
	}
	clean := path.Clean(p)
	return p == clean || len(p) == len(clean)+1 && p[len(p)-1] == '/' && p[:len(clean)] == clean
}
