package caller

import (
	"net/http"
	"strconv"

	"github.com/headgate-go/headgate/priority"
)

// FirstOf asks each identity in turn and returns the first verified caller. When
// none is verified it returns the first that has a name at all, else the zero Caller. An
// error ends the search. FirstOf panics when it is given nothing or a nil.
func FirstOf(ids ...Identify) Identify {
	mustIdentify("FirstOf", ids)
	return func(r *http.Request) (Caller, error) {
		var best Caller
		for _, id := range ids {
			c, err := id(r)
			if err != nil || c.Verified {
				return c, err
			}
			if best.Key == "" {
				best = c
			}
		}
		return best, nil
	}
}

// Join makes one identity of several, such as tenant and address: each pair is a
// caller of its own. Two different lists never make the same name. Plan and Level
// are those of the first verified caller that has one.
//
// The joint caller is verified when at least one part is and the others are
// verified or addresses. When a part is unknown, or is unverified text, the whole is
// unknown: a caller cannot multiply its buckets by varying a
// header. An error of any part is returned. The cost is one allocation. Join
// panics when it is given nothing or a nil.
func Join(ids ...Identify) Identify {
	mustIdentify("Join", ids)
	return func(r *http.Request) (Caller, error) {
		joint := Caller{Space: spaceJoin}
		var stack [2 * maxKey]byte
		name := stack[:0]
		for _, id := range ids {
			c, err := id(r)
			if err != nil {
				return Caller{}, err
			}
			if c.Key == "" || !c.Verified && c.Space != spaceAddr {
				return Caller{}, nil
			}
			name = appendPart(name, c.Space)
			name = appendPart(name, c.Key)
			joint.adopt(c)
		}
		joint.Key = boundKey(string(name))
		return joint, nil
	}
}

// adopt takes over what a verified part says about the whole.
func (c *Caller) adopt(part Caller) {
	if !part.Verified {
		return
	}
	c.Verified = true
	if c.Plan == "" {
		c.Plan = part.Plan
	}
	if c.Alias == "" {
		c.Alias = part.Alias
	}
	if c.Level == 0 {
		c.Level = part.Level
	}
}

// appendPart appends s as a netstring without the final comma: its length in
// decimal, a colon, itself. A sequence of parts reads back in one way only.
func appendPart(dst []byte, s string) []byte {
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	dst = append(dst, ':')
	return append(dst, s...)
}

func mustIdentify(caller string, ids []Identify) {
	if len(ids) == 0 {
		panic("caller: " + caller + " needs at least one identity")
	}
	for _, id := range ids {
		if id == nil {
			panic("caller: " + caller + ": an identity is nil")
		}
	}
}

// LevelBound is what a caller's own rank does to the level of the route it asks
// for: nothing (the zero value), [AtLeast] or [AtMost]. It counts for verified
// callers only. Numbers that neither of the two returns have no say.
type LevelBound int8

// AtLeast raises a caller's requests to l where the route's level is lower:
// AtLeast(priority.High) for a plan that paid for it. An invalid level has no say.
func AtLeast(l priority.Level) LevelBound {
	if !l.Valid() {
		return 0
	}
	return LevelBound(l.Index() + 1)
}

// AtMost lowers a caller's requests to l where the route's level is higher:
// AtMost(priority.Batch) for a free plan. An invalid level has no say.
func AtMost(l priority.Level) LevelBound { return -AtLeast(l) }

// Apply returns the level of a request to a route of the given level.
func (b LevelBound) Apply(route priority.Level) priority.Level {
	switch i := int(b); {
	case i > 0 && i <= priority.Count:
		return max(route, priority.All()[i-1])
	case i < 0 && i >= -priority.Count:
		return min(route, priority.All()[-i-1])
	}
	return route
}
