package ratelimit

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// The interfaces in this file are optional: a [Limiter] implements what it can do.
// [Scoped], [Shadow], [Counting] and [All] pass every one of them on to what they hold; a test
// walks all of them.

// Undoer takes tokens back.
type Undoer interface {
	Undo(now time.Time, g Grant)
}

// Adjuster is implemented by limiters that can change a grant after the fact: by
// more tokens (the work cost more than was asked; the balance may go into debt), or
// by fewer, at most all of the grant. A grant is adjusted or undone once; the
// caller keeps count.
type Adjuster interface {
	Adjust(now time.Time, g Grant, by int)
}

// Peeker is implemented by limiters that can answer without taking. Peek returns
// what Take would have decided, with an empty Grant.
type Peeker interface {
	Peek(now time.Time, key Key, cost int, maxWait time.Duration) Decision
}

// Owner is implemented by limiters in memory. Own returns a limiter with the
// receiver's numbers whose balances belong to the caller alone, so that one
// configuration may build two gates. When prev is a limiter of the same kind, its
// balances are kept and the new numbers count from now on: that is a reload.
// Limiters whose state is elsewhere by nature do not implement it and are used as
// they are.
type Owner interface {
	Own(prev Limiter) Limiter
}

// Adopter is implemented by limiters that can tell whether they would go on from
// prev's balances. One that cannot starts afresh inside a limit made of several.
type Adopter interface {
	Adopts(prev Limiter) bool
}

// Lister is implemented by limits made of several.
type Lister interface {
	// AppendPolicies appends the policies in force for key to dst, in the order
	// in which they are tested. Limits in shadow are left out.
	AppendPolicies(dst []Policy, key Key) []Policy
}

// AppendPolicies appends the policies that l enforces on key to dst: all of them
// when l is made of several limits, none when it is unlimited.
func AppendPolicies(dst []Policy, l Limiter, key Key) []Policy {
	if many, ok := l.(Lister); ok {
		return many.AppendPolicies(dst, key)
	}
	if p := l.Policy(key); !p.Unlimited() {
		dst = append(dst, p)
	}
	return dst
}

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

// Feedback is implemented by limiters that pass on to all who share the ceiling what
// one of them learns from the other side, such as a limiter with a store. Where
// [Adapts] says so, a client leaves the adapting to the limiter: Take then refuses
// during a pause, and Policy returns the rate in force.
type Feedback interface {
	// Throttled tells that the service behind key asked, at now, for less. Nothing
	// is granted to key before pause has passed, and the rate is multiplied by
	// factor, once per epoch of max(1 s, pause) however often it is told. It does
	// not block: a store is told in the background.
	Throttled(now time.Time, key Key, pause time.Duration, factor float64)
}

// InMemory reports whether Take on l decides from memory alone, so that it takes no
// time. It is false where it cannot be known.
func InMemory(l Limiter) bool {
	switch l := l.(type) {
	case nil, unlimited, *Buckets:
		return true
	case wrapper:
		return InMemory(l.inner())
	case *allOf:
		for _, part := range l.limits {
			if !InMemory(part) {
				return false
			}
		}
		return true
	}
	return false
}

// Counter is implemented by limiters that have Stats.
type Counter interface {
	Stats() Stats
}

// Stored is implemented by limiters whose ceiling is shared through a store.
type Stored interface {
	StoreStats() StoreStats
}

// Own returns l with balances of its own, taken over from prev where it can be; prev
// may be nil. A limiter whose state is elsewhere is returned as it is.
func Own(l, prev Limiter) Limiter {
	if many, ok := prev.(*allOf); ok && !adopts(l, prev) {
		return ownFrom(l, slices.Clone(many.limits))
	}
	if o, ok := l.(Owner); ok {
		return o.Own(prev)
	}
	return l
}

func adopts(l, prev Limiter) bool {
	a, ok := l.(Adopter)
	return ok && prev != nil && a.Adopts(prev)
}

// ownFrom gives l the balances of the first of old that it would adopt, which is
// struck off: no two limits can go on from the same balances.
func ownFrom(l Limiter, old []Limiter) Limiter {
	for i, prev := range old {
		if adopts(l, prev) {
			old[i] = nil
			return Own(l, prev)
		}
	}
	return Own(l, nil)
}

// Adapts reports whether l enforces a limit that adapts to throttles by itself, so that
// a client has only to tell it. Wrappers have the method of [Feedback] whatever they
// hold, and a limit in shadow enforces nothing: that a limiter implements [Feedback]
// does not say it.
func Adapts(l Limiter) bool {
	switch l := l.(type) {
	case *allOf:
		return slices.ContainsFunc(l.limits, Adapts)
	case *shadow:
		return false
	case wrapper:
		return Adapts(l.inner())
	}
	_, ok := l.(Feedback)
	return ok
}

// PlannerOf returns the part of l whose plans say more than a rate (a Cost, a Level
// a Share or a Weight), or nil when there is none: then there is nothing to ask at each
// request. It sees through [All] and all wrappers; of several parts the first
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
	case wrapper:
		return PlannerOf(l.inner())
	case *Buckets:
		if !l.saysMore() {
			return nil
		}
		return l
	}
	p, _ := l.(Planner)
	return p
}

// StatsOf returns the stats of l, or zeros when it has none.
func StatsOf(l Limiter) Stats {
	switch l := l.(type) {
	case Counter:
		return l.Stats()
	case Stored:
		store := l.StoreStats()
		return Stats{Keys: store.Keys, Stores: []StoreStats{store}}
	}
	return Stats{}
}

// What a limiter around another needs to ask of it, whatever it can do.

// within is a grant seen from the limiter that a wrapper holds.
func within(inner Limiter, g Grant) Decision {
	g.From, _ = inner.(Undoer)
	return Decision{OK: true, Grant: g}
}

func peek(inner Limiter, now time.Time, key Key, cost int, maxWait time.Duration) Decision {
	if p, ok := inner.(Peeker); ok {
		return p.Peek(now, key, cost, maxWait)
	}
	return Decision{OK: true, Remaining: math.MaxInt}
}

func planOf(inner Limiter, key Key) Plan {
	if p, ok := inner.(Planner); ok {
		return p.PlanOf(key)
	}
	return Plan{}
}

func plansOf(inner Limiter) iter.Seq2[string, Plan] {
	if t, ok := inner.(PlanTable); ok {
		return t.Plans()
	}
	return func(func(string, Plan) bool) {}
}

func throttled(inner Limiter, now time.Time, key Key, pause time.Duration, factor float64) {
	if f, ok := inner.(Feedback); ok {
		f.Throttled(now, key, pause, factor)
	}
}

func storeStatsOf(inner Limiter) StoreStats {
	if s, ok := inner.(Stored); ok {
		return s.StoreStats()
	}
	return StoreStats{}
}

func validate(wrapper string, inner Limiter) error {
	if inner == nil {
		return fmt.Errorf("ratelimit: %s: the limiter is nil", wrapper)
	}
	return inner.Validate()
}
