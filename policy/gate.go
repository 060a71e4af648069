package policy

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
)

// gate is [admission.Options] as a file spells it.
type gate struct {
	Name        string           `yaml:"name"`
	Callers     []identity       `yaml:"callers"`
	ClientIP    clientIP         `yaml:"client_ip"`
	Limits      limitSet         `yaml:"limits"`
	Capacity    pool             `yaml:"capacity"`
	Pools       map[string]pool  `yaml:"pools"`
	Pressure    pressureGuard    `yaml:"pressure"`
	Deadline    deadline         `yaml:"deadline"`
	LevelHeader headerName       `yaml:"level_header"`
	Routes      map[string]route `yaml:"routes"`
	AnyCase     bool             `yaml:"any_case"`
	Preflights  string           `yaml:"preflights" words:"uncharged,as-others,answered"`
	Headers     []string         `yaml:"headers" words:"ietf-draft-11,x-ratelimit"`
	Shadow      []string         `yaml:"shadow" words:"rate,capacity"`
	Outcomes    string           `yaml:"outcomes" words:"watch,off"`
}

func (g *gate) options(at place, ls limits) admission.Options {
	clientIP, addresses := g.ClientIP.options(at.in("client_ip"))
	opts := admission.Options{
		Name:     g.Name,
		Identify: identify(at.in("callers"), g.Callers, addresses),
		ClientIP: clientIP,
		Pressure: g.Pressure.options(at.in("pressure")),
		Deadline: g.Deadline.options(at.in("deadline")),
		HTTP: admission.HTTP{
			LevelHeader:             string(g.LevelHeader),
			Preflights:              word(at.in("preflights"), g.Preflights, preflights),
			RateLimitHeaders:        names(at.in("headers"), g.Headers, headerSets),
			DisableResponseWrapping: unwatched(at.in("outcomes"), g.Outcomes),
		},
		Shadow: names(at.in("shadow"), g.Shadow, layers),
	}
	g.Limits.fill(at.in("limits"), ls, &opts)
	opts.Pool = g.Capacity.options(at.in("capacity"))
	for name, pool := range g.Pools {
		if opts.Pools == nil {
			opts.Pools = make(map[string]admission.Pool, len(g.Pools))
		}
		opts.Pools[name] = pool.options(at.in("pools", name))
	}
	opts.Routes = g.routes(at.in("routes"), ls)
	g.checkPlans(at)
	g.checkUnits(at)
	return opts
}

// clientIP is [caller.ClientIP].
type clientIP struct {
	Trusted  []string   `yaml:"trusted"`
	Hops     Int        `yaml:"hops"`
	Header   headerName `yaml:"header"`
	IPv6Bits Int        `yaml:"ipv6_bits"`
}

func (c clientIP) options(at place) (caller.ClientIP, *caller.Addresses) {
	opts := caller.ClientIP{
		Trusted: c.Trusted, Hops: int(c.Hops), Header: string(c.Header), IPv6Bits: int(c.IPv6Bits),
	}
	addresses, err := caller.NewAddresses(opts)
	at.wrong(err)
	return opts, addresses
}

// deadline is [admission.Deadline]: the smallest of what is set wins.
type deadline struct {
	Longest Duration   `yaml:"longest"`
	Header  headerName `yaml:"header"`
	GRPC    bool       `yaml:"grpc"`
	Envoy   bool       `yaml:"envoy"`
}

func (d deadline) options(at place) admission.Deadline {
	longest := time.Duration(d.Longest)
	if longest < 0 {
		at.in("longest").wrongf("must not be negative")
	}
	all := []admission.Deadline{admission.Within(longest)}
	if d.Header != "" {
		all = append(all, admission.TimeoutHeader(string(d.Header), longest))
	}
	if d.GRPC {
		all = append(all, admission.GRPCTimeout(longest))
	}
	if d.Envoy {
		all = append(all, admission.EnvoyTimeout(longest))
	}
	return admission.Deadlines(all...)
}

// route is one of [admission.Options].Routes. A route that is left empty is at
// level normal.
type route struct {
	Level   level          `yaml:"level"`
	Cost    Int            `yaml:"cost"`
	Units   map[string]Int `yaml:"units"`
	Slots   Int            `yaml:"slots"`
	Rate    *limit         `yaml:"rate"`
	Cap     Int            `yaml:"cap"`
	Timeout Duration       `yaml:"timeout"`
	Pool    string         `yaml:"pool"`
	Stream  Int            `yaml:"stream"`
	Exempt  bool           `yaml:"exempt"`
}

func (g *gate) routes(at place, ls limits) map[string]admission.Rule {
	if len(g.Routes) == 0 {
		return nil
	}
	rules := make(map[string]admission.Rule, len(g.Routes))
	mux := http.NewServeMux()
	for _, pattern := range slices.Sorted(maps.Keys(g.Routes)) {
		here := at.in(pattern)
		here.wrong(register(mux, pattern))
		route := g.Routes[pattern]
		if route.Pool != "" {
			if _, ok := g.Pools[route.Pool]; !ok {
				here.in("pool").wrong(unknown(route.Pool, g.Pools, "gate.pools is empty"))
			}
		}
		rule := admission.AtLevel(priority.Level(route.Level), route.options(here, ls)...)
		if g.AnyCase {
			rule = rule.AnyCase()
		}
		rules[pattern] = rule
	}
	return rules
}

// register finds out whether a pattern is malformed or in conflict with another,
// of which the mux panics.
func register(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

func (r route) options(at place, ls limits) (opts []admission.RouteOption) {
	for _, n := range []struct {
		field  string
		value  Int
		option func(int) admission.RouteOption
	}{{"cost", r.Cost, admission.Cost}, {"slots", r.Slots, admission.Slots}, {"cap", r.Cap, admission.Cap}, {"stream", r.Stream, admission.Stream}} {
		switch {
		case n.value < 0:
			at.in(n.field).wrongf("must be at least 1")
		case n.value > 0:
			opts = append(opts, n.option(int(n.value)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Units)) {
		n := int(r.Units[name])
		if n < 1 {
			at.in("units", name).wrongf("must be at least 1")
		}
		opts = append(opts, admission.CostIn(name, func(*http.Request) int { return n }))
	}
	switch {
	case r.Timeout < 0:
		at.in("timeout").wrongf("must be positive")
	case r.Timeout > 0:
		opts = append(opts, admission.Timeout(time.Duration(r.Timeout)))
	}
	if r.Pool != "" {
		opts = append(opts, admission.InPool(r.Pool))
	}
	if l := r.Rate.limiter(at.in("rate"), ls); l != nil {
		opts = append(opts, admission.Rate(l))
	}
	return r.exempt(at, opts)
}

// exempt adds the option that excludes all others.
func (r route) exempt(at place, opts []admission.RouteOption) []admission.RouteOption {
	if !r.Exempt {
		if r.Cap > 0 && r.Stream > 0 {
			at.in("cap").wrongf("not together with stream, which is a cap")
		}
		return opts
	}
	if len(opts) > 0 {
		at.in("exempt").wrongf("excludes every other option of the route")
	}
	return []admission.RouteOption{admission.Exempt()}
}
