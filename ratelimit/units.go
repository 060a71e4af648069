package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

const maxUnits = 4

// Units is what one request takes of limits that count something else than requests:
// tokens of a language model, bytes, rows; up to four of them. The zero value takes nothing of them. It is
// not safe for concurrent use.
type Units struct {
	all  [maxUnits]amount
	used int
}

type amount struct {
	unit string
	n    int
}

// Set says how much of a unit the request takes; below 1 counts as 1, so that an
// estimate of nothing does not pass a limit that is in debt. The last word on a unit
// counts. It reports false, and sets nothing, for a unit without a name and for more than
// four of them.
func (u *Units) Set(unit string, n int) bool {
	i := slices.IndexFunc(u.all[:u.used], func(a amount) bool { return a.unit == unit })
	switch {
	case i >= 0:
	case unit == "" || u.used == maxUnits:
		return false
	default:
		i, u.used = u.used, u.used+1
	}
	u.all[i] = amount{unit, max(n, 1)}
	return true
}

// Of returns how much of a unit the request takes; false when it does not name it.
// A nil Units names none.
func (u *Units) Of(unit string) (n int, named bool) {
	if u == nil {
		return 0, false
	}
	for _, a := range u.all[:u.used] {
		if a.unit == unit {
			return a.n, true
		}
	}
	return 0, false
}

// Counting returns l as a limit on a unit: it takes what a request names of that unit
// ([Key].Units) instead of its cost, and admits a request that does not name it without
// taking anything. With [All] it stands beside limits on requests:
//
//	ratelimit.All(
//		ratelimit.PerKey(1, 60, ratelimit.Name("requests")),
//		ratelimit.Counting("tokens", ratelimit.PerKey(1000, 6000, ratelimit.Name("tokens"))),
//	)
//
// The unit is the client's word for it too: the policy's qu in RateLimit-Policy. What a
// request named can be put right once it is known ([Decision.Settle]). An empty unit,
// "requests", and an l that counts a unit itself are errors from Validate.
func Counting(unit string, l Limiter) Limiter { return &counting{around{l}, unit} }

type counting struct {
	around
	unit string
}

// requests is the unit of every limit that names none.
const requests = "requests"

// Take implements [Limiter].
func (c *counting) Take(ctx context.Context, now time.Time, key Key, _ int, maxWait time.Duration) Decision {
	n, named := key.Units.Of(c.unit)
	if !named {
		return Decision{OK: true, Remaining: math.MaxInt}
	}
	d := c.limit.Take(ctx, now, unitless(key), n, maxWait)
	if d.Cost = n; d.Grant.From != nil {
		d.Grant.From, d.Grant.Key = c, key
	}
	return d
}

// unitless is the key for a limit inside, which counts no unit of its own.
func unitless(key Key) Key {
	key.Units = nil
	return key
}

// Peek implements [Peeker]; a limiter that cannot be looked at counts as agreeing.
func (c *counting) Peek(now time.Time, key Key, _ int, maxWait time.Duration) Decision {
	n, named := key.Units.Of(c.unit)
	if !named {
		return Decision{OK: true, Remaining: math.MaxInt}
	}
	d := peek(c.limit, now, unitless(key), n, maxWait)
	d.Cost = n
	return d
}

// Undo implements [Undoer].
func (c *counting) Undo(now time.Time, g Grant) { c.grant(g).Undo(now) }

// Adjust implements [Adjuster]: where the adjustment is about the unit.
func (c *counting) Adjust(now time.Time, g Grant, by int) {
	if g.Unit == c.unit {
		c.grant(g).Adjust(now, by)
	}
}

// grant is g as the limiter inside made it. Whoever keeps the grants of a request
// keeps its cost once, so how much of the unit it took stands in the key.
func (c *counting) grant(g Grant) Decision {
	g.Cost, _ = g.Key.Units.Of(c.unit)
	g.Key, g.Unit = unitless(g.Key), ""
	return within(c.limit, g)
}

// Policy implements [Limiter].
func (c *counting) Policy(key Key) Policy {
	p := c.limit.Policy(unitless(key))
	p.Unit = c.unit
	return p
}

// AppendPolicies implements [Lister].
func (c *counting) AppendPolicies(dst []Policy, key Key) []Policy {
	from := len(dst)
	dst = AppendPolicies(dst, c.limit, unitless(key))
	for i := range dst[from:] {
		dst[from+i].Unit = c.unit
	}
	return dst
}

// PlanOf implements [Planner].
func (c *counting) PlanOf(key Key) Plan { return planOf(c.limit, unitless(key)) }

// Throttled implements [Feedback].
func (c *counting) Throttled(now time.Time, key Key, pause time.Duration, factor float64) {
	throttled(c.limit, now, unitless(key), pause, factor)
}

// Validate implements [Limiter].
func (c *counting) Validate() error {
	switch {
	case c.unit == "":
		return errors.New("ratelimit: Counting: the unit is empty")
	case c.unit == requests:
		return errors.New("ratelimit: Counting: every limit counts requests unless told otherwise")
	case countsUnits(c.limit):
		return fmt.Errorf("ratelimit: Counting %q: the limiter counts a unit itself", c.unit)
	}
	return validate("Counting", c.limit)
}

// Own implements [Owner]. A limit that begins to count something else starts afresh.
func (c *counting) Own(prev Limiter) Limiter {
	own := &counting{unit: c.unit}
	if p, ok := prev.(*counting); ok && p.unit == c.unit {
		own.limit = Own(c.limit, p.limit)
	} else {
		own.limit = Own(c.limit, nil)
	}
	return own
}

// Adopts implements [Adopter].
func (c *counting) Adopts(prev Limiter) bool {
	p, ok := prev.(*counting)
	return ok && p.unit == c.unit && adopts(c.limit, p.limit)
}

// Counts reports whether l, or a part of it, counts that unit. It sees through [All],
// [Scoped] and [Shadow].
func Counts(l Limiter, unit string) bool {
	return anyCounting(l, func(c *counting) bool { return c.unit == unit })
}

func countsUnits(l any) bool { return anyCounting(l, func(*counting) bool { return true }) }

func anyCounting(l any, is func(*counting) bool) bool {
	switch l := l.(type) {
	case *counting:
		return is(l)
	case wrapper:
		return anyCounting(l.inner(), is)
	case *allOf:
		return slices.ContainsFunc(l.limits, func(part Limiter) bool { return anyCounting(part, is) })
	}
	return false
}
