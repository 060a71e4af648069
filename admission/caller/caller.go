// Package caller says who sent a request: by a credential, a header of the service's
// own gateway, any function that returns a key, or the client's address, which may
// stand in a header that proxies set. It knows no gate and no limit.
//
//	admission.Options{Tenant: caller.APIKey("X-API-Key", lookup)}
package caller

import "github.com/headgate-go/headgate/priority"

// Caller is who a request is attributed to: the key its tokens are taken from, its
// turn in the queue, its row on the dashboard. It is a plain value.
//
// The zero Caller is unknown. A gate charges it to the client's address, under
// Options.Anonymous, as it does every caller that is not Verified: text a client
// made up never gets a bucket of its own.
type Caller struct {
	Key      string     // the name, unique within Space
	Space    string     // what kind of name Key is, so that kinds never collide; APIKey fills in "key"
	Plan     string     // which numbers apply, such as "free"; empty is the default plan
	Verified bool       // something that the service trusts confirms Key
	Level    LevelBound // what this caller's rank does to a route's level; zero has no say
	Alias    string     // a name fit for dashboards and logs; empty: a digest of Key
}

// The spaces of the identities made here.
const (
	spaceKey    = "key"
	spaceAddr   = "addr"
	spaceCustom = "custom"
	spaceJoin   = "join"
	spaceHeader = "header:" // + the header's name
)

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
		return max(route, priority.FromIndex(i-1))
	case i < 0 && i >= -priority.Count:
		return min(route, priority.FromIndex(-i-1))
	}
	return route
}

// named fills in the name and space that a lookup left empty.
func (c Caller) named(key, space string) Caller {
	if c.Key == "" {
		c.Key = key
	}
	if c.Space == "" {
		c.Space = space
	}
	c.Key = boundKey(c.Key)
	return c
}

// OfAddress is the unverified caller that is known by its address alone, as
// [Addresses.Key] spells it.
func OfAddress(key string) Caller { return Caller{Key: key, Space: spaceAddr} }
