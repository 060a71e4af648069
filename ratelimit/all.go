package ratelimit

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"
)

const maxLimits = 6 // that one decision may be made of

// All returns a limiter that admits what every one of its parts admits: all are
// charged or none is. Parts that are themselves made by All are taken apart first;
// none at all is [Unlimited]. More than six, nil, and two parts of one name
// are errors from Validate: a client is told by name which limit it met.
//
// Parts are asked in order: put the narrowest first and a limit shared by all callers
// last, so that a caller refused by its own never touches the others' tokens, not
// even for a moment. After the first refusal the rest are only looked at. The
// decision describes the limit that refused, with the longest wait when several do;
// when all agree, the one with least left. With maxWait the wait is the longest of
// the parts'; tokens of a part that matured sooner are held meanwhile. Undo and
// Adjust reach all parts. It allocates nothing.
func All(limits ...Limiter) Limiter {
	var flat []Limiter
	for _, l := range limits {
		if nested, ok := l.(*allOf); ok {
			flat = append(flat, nested.limits...)
			continue
		}
		flat = append(flat, l)
	}
	return newAllOf(flat)
}

type allOf struct {
	limits []Limiter
	places []place // where each part's grant is kept
	err    error
}

// newAllOf checks what must hold before the parts can be asked anything.
func newAllOf(limits []Limiter) *allOf {
	a := &allOf{limits: limits, places: make([]place, len(limits))}
	n := 0
	for i, l := range limits {
		a.places[i] = placeOf(l)
		a.places[i].first = n
		n += a.places[i].width
	}
	if n > maxLimits {
		a.err = fmt.Errorf("ratelimit: All has %d limits, may have %d", n, maxLimits)
	}
	if i := slices.Index(limits, nil); i >= 0 {
		a.err = fmt.Errorf("ratelimit: All: limit %d is nil", i+1)
	}
	return a
}

// Take implements [Limiter].
func (a *allOf) Take(ctx context.Context, now time.Time, key Key, cost int, maxWait time.Duration) (d Decision) {
	if a.err != nil {
		return Decision{Never: true}
	}
	d = Decision{OK: true, Remaining: math.MaxInt}
	g := Grant{From: a, Key: key, Cost: max(cost, 1), At: now}
	for i, l := range a.limits {
		part := l.Take(ctx, now, key, cost, maxWait)
		if !part.OK {
			a.undo(now, &g)
			a.refuse(&part, i+1, now, key, cost, maxWait)
			part.Shadow = d.Shadow
			return part
		}
		if part.Grant.From != nil {
			g.Parts.keep(a.places[i], &part.Grant)
		}
		d.agree(&part, cost)
	}
	if g.Parts.held != 0 {
		d.Grant = g
	}
	return d
}

// agree takes over from part what limits the request most: the part under which the
// fewest such requests may follow.
func (d *Decision) agree(part *Decision, cost int) {
	if part.follow(cost) < d.follow(cost) || d.Policy == "" {
		d.Remaining, d.Policy, d.Reset, d.Source, d.Cost = part.Remaining, part.Policy, part.Reset, part.Source, part.Cost
	}
	d.Wait = max(d.Wait, part.Wait)
	if d.Shadow == "" {
		d.Shadow = part.Shadow
	}
}

// follow returns how many more such requests, asked with this cost, may follow.
func (d *Decision) follow(cost int) float64 {
	if d.Cost > 0 {
		cost = d.Cost
	}
	return float64(d.Remaining) / float64(max(cost, 1))
}

// refuse looks at the parts after the one that refused for a longer wait.
func (a *allOf) refuse(worst *Decision, from int, now time.Time, key Key, cost int, maxWait time.Duration) {
	for _, l := range a.limits[from:] {
		p, ok := l.(Peeker)
		if !ok || worst.Never {
			continue
		}
		part := p.Peek(now, key, cost, maxWait)
		if !part.OK && (part.Never || part.Wait > worst.Wait) {
			*worst = part
		}
	}
}

// Peek implements [Peeker]. Parts that cannot be looked at count as agreeing.
func (a *allOf) Peek(now time.Time, key Key, cost int, maxWait time.Duration) (d Decision) {
	if a.err != nil {
		return Decision{Never: true}
	}
	d = Decision{OK: true, Remaining: math.MaxInt}
	for i, l := range a.limits {
		p, ok := l.(Peeker)
		if !ok {
			continue
		}
		part := p.Peek(now, key, cost, maxWait)
		if !part.OK {
			a.refuse(&part, i+1, now, key, cost, maxWait)
			return part
		}
		d.agree(&part, cost)
	}
	return d
}

// part is the grant of one part of a.
func (a *allOf) part(i int, g *Grant) (part Grant, held bool) {
	from, ok := a.limits[i].(Undoer)
	if !ok {
		return Grant{}, false
	}
	part = Grant{From: from, Key: g.Key, Cost: g.Cost, Unit: g.Unit, At: g.At}
	return part, g.Parts.into(a.places[i], &part)
}

func (a *allOf) undo(now time.Time, g *Grant) {
	for i := range a.limits {
		if part, ok := a.part(i, g); ok {
			part.From.Undo(now, part)
		}
	}
}

// Undo implements [Undoer].
func (a *allOf) Undo(now time.Time, g Grant) { a.undo(now, &g) }

// Adjust implements [Adjuster].
func (a *allOf) Adjust(now time.Time, g Grant, by int) {
	for i := range a.limits {
		if part, ok := a.part(i, &g); ok {
			Decision{OK: true, Grant: part}.Adjust(now, by)
		}
	}
}

// Policy implements [Limiter]: that of the first part. [AppendPolicies] has all.
func (a *allOf) Policy(key Key) Policy {
	switch {
	case a.err != nil:
		return Policy{}
	case len(a.limits) == 0:
		return Unlimited.Policy(key)
	default:
		return a.limits[0].Policy(key)
	}
}

// AppendPolicies implements [Lister].
func (a *allOf) AppendPolicies(dst []Policy, key Key) []Policy {
	for _, l := range a.limits {
		dst = AppendPolicies(dst, l, key)
	}
	return dst
}

// PlanOf implements [Planner]: what the part that [PlannerOf] finds says, or else the
// first that knows plans.
func (a *allOf) PlanOf(key Key) Plan {
	if p := PlannerOf(a); p != nil {
		return p.PlanOf(key)
	}
	for _, l := range a.limits {
		if p, ok := l.(Planner); ok {
			return p.PlanOf(key)
		}
	}
	return Plan{}
}

// Plans implements [PlanTable]: those of all parts; where several know a name, the
// first says what it means.
func (a *allOf) Plans() iter.Seq2[string, Plan] {
	plans := map[string]Plan{}
	for _, l := range a.limits {
		for name, p := range plansOf(l) {
			if _, known := plans[name]; !known {
				plans[name] = p
			}
		}
	}
	names := slices.Sorted(maps.Keys(plans)) // the fallback's, "", is first
	return func(yield func(string, Plan) bool) {
		for _, name := range names {
			if !yield(name, plans[name]) {
				return
			}
		}
	}
}

// Throttled implements [Feedback]: every part is told.
func (a *allOf) Throttled(now time.Time, key Key, pause time.Duration, factor float64) {
	for _, l := range a.limits {
		throttled(l, now, key, pause, factor)
	}
}

// Validate implements [Limiter].
func (a *allOf) Validate() error {
	if a.err != nil {
		return a.err
	}
	for _, l := range a.limits {
		if err := l.Validate(); err != nil {
			return err
		}
	}
	names := map[string]bool{}
	for _, p := range a.AppendPolicies(nil, Key{}) {
		if names[p.Name] {
			return fmt.Errorf("ratelimit: All: two limits are named %q", p.Name)
		}
		names[p.Name] = true
	}
	return nil
}

// Own implements [Owner]: each part keeps the balances of the first part of prev
// that has its kind and name.
func (a *allOf) Own(prev Limiter) Limiter {
	if a.err != nil {
		return a
	}
	old := []Limiter{prev}
	if p, ok := prev.(*allOf); ok {
		old = slices.Clone(p.limits)
	}
	own := make([]Limiter, len(a.limits))
	for i, l := range a.limits {
		own[i] = ownFrom(l, old)
	}
	return newAllOf(own)
}

// Adopts implements [Adopter].
func (a *allOf) Adopts(prev Limiter) bool {
	_, ok := prev.(*allOf)
	return ok
}

// Stats implements [Counter]: the sum over the parts.
func (a *allOf) Stats() (sum Stats) {
	for _, l := range a.limits {
		sum.Add(StatsOf(l))
	}
	return sum
}

// StoreStats implements [Stored]: those of the first part that has a store. Stats has
// all.
func (a *allOf) StoreStats() StoreStats {
	for _, l := range a.limits {
		if s := storeStatsOf(l); s.Name != "" {
			return s
		}
	}
	return StoreStats{}
}
