package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A name that refers to nothing is a misspelt one: a key whose plan no limit knows would
// silently have the numbers of callers without a plan.

// checkPlans reports keys with plans that no limit of the gate has.
func (g *gate) checkPlans(at place) {
	known := map[string]bool{}
	for _, l := range g.planned() {
		for name := range l.Plans {
			known[name] = true
		}
	}
	checkPlans(at.in("callers"), g.Callers, known)
}

// planned are the limits in which a caller's plan has a say. The address is counted
// before the caller is known.
func (g *gate) planned() (all []*limit) {
	all = append(all, g.Limits.Rate, g.Limits.Anonymous, g.Limits.Quota)
	for _, r := range g.Routes {
		all = append(all, r.Rate)
	}
	return withOthers(slices.DeleteFunc(all, func(l *limit) bool { return l == nil }))
}

// withOthers returns the limits and those that hold beside them.
func withOthers(limits []*limit) (all []*limit) {
	for _, l := range limits {
		all = append(all, l)
		for i := range l.And {
			all = append(all, withOthers([]*limit{&l.And[i]})...)
		}
	}
	return all
}

// checkUnits reports routes that name a unit which no limit of the gate counts.
func (g *gate) checkUnits(at place) {
	counted := map[string]bool{}
	for _, l := range g.planned() {
		if l.Counts != "" {
			counted[l.Counts] = true
		}
	}
	for pattern, r := range g.Routes {
		for name := range r.Units {
			if !counted[name] {
				at.in("routes", pattern, "units", name).wrong(unknown(name, counted, "no limit counts a unit"))
			}
		}
	}
}

func checkPlans(at place, list []identity, known map[string]bool) {
	for i, c := range list {
		here := at.in(strconv.Itoa(i))
		checkPlans(here.in("join"), c.Join, known)
		if c.APIKey == nil {
			continue
		}
		for j, k := range c.APIKey.Keys {
			if k.Plan != "" && !known[k.Plan] {
				here.in("api_key", "keys", strconv.Itoa(j), "plan").wrong(unknown(k.Plan, known, "no limit has such a plan"))
			}
		}
	}
}

// unknown says that a name is not among those known, which it lists.
func unknown[V any](name string, known map[string]V, otherwise string) error {
	if len(known) == 0 {
		return fmt.Errorf("unknown %q: %s", name, otherwise)
	}
	return fmt.Errorf("unknown %q; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}
