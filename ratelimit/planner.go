package ratelimit

import (
	"iter"
	"maps"
	"slices"
)

// Planner is implemented by limiters that know plans.
type Planner interface {
	// PlanOf returns the plan in force for key: the one it names, with the
	// fallback's numbers where it leaves them unset, or the fallback.
	PlanOf(key Key) Plan
}

// PlanTable is implemented by planners whose plans are known beforehand.
type PlanTable interface {
	// Plans returns the plans by name, in order; the fallback is first and has
	// no name.
	Plans() iter.Seq2[string, Plan]
}

// PlannerOf returns the part of l whose plans say more than a rate (a Cost, a Level
// or a Share), or nil when there is none: then nobody need be asked at each
// request. It sees through [All], [Scoped] and [Shadow]; of several parts the first
// speaks.
func PlannerOf(l Limiter) Planner {
	switch l := l.(type) {
	case *allOf:
		for _, part := range l.limits {
			if p := PlannerOf(part); p != nil {
				return p
			}
		}
		return nil
	case *scoped:
		return PlannerOf(l.limit)
	case *shadow:
		return PlannerOf(l.limit)
	case *Buckets:
		if !l.sellsMore() {
			return nil
		}
		return l
	}
	p, _ := l.(Planner)
	return p
}

// sellsMore reports whether a plan may say more than a rate. What a function says
// is not known beforehand.
func (b *Buckets) sellsMore() bool {
	if b.pick != nil {
		return true
	}
	for _, p := range b.Plans() {
		if p.Cost > 1 || p.Level != "" || p.Share > 0 {
			return true
		}
	}
	return false
}

// Plans implements [PlanTable].
func (b *Buckets) Plans() iter.Seq2[string, Plan] {
	return func(yield func(string, Plan) bool) {
		if !yield("", b.rest.Plan) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(b.plans)) {
			if !yield(name, b.plans[name].Plan) {
				return
			}
		}
	}
}
