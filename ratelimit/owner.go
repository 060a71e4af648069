package ratelimit

import "slices"

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

// Adopter is implemented by limiters that can tell whether they would go on from
// prev's balances. One that cannot starts afresh inside a limit made of several.
type Adopter interface {
	Adopts(prev Limiter) bool
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
