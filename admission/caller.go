package admission

import (
	"context"
	"net/http"

	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

// Caller is who a request is attributed to: the key its tokens are taken from, its
// turn in the queue, its row on the dashboard. It is a plain value.
//
// The zero Caller is nobody in particular. It is billed to the client's address
// under Options.Anonymous, as is every caller that is not Verified: text a client
// made up never gets a bucket of its own.
type Caller struct {
	Key      string     // the name, unique within Space
	Space    string     // what kind of name Key is, so that kinds never collide; APIKey fills in "key"
	Plan     string     // which numbers apply, such as "free"; empty is the default plan
	Verified bool       // something the service trusts vouches for Key
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

// Identify says who sent a request. It runs once per request, before anything is
// charged, on the request's own goroutine; it must be safe for concurrent use, and
// it must not read the body. A zero Caller means "nobody I know" and is no
// refusal. An error refuses the request as [shed.Unidentified]; its text never
// reaches the client. An error that is or wraps a *[Rejection] is answered as that
// rejection says.
type Identify func(*http.Request) (Caller, error)

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

// apply returns the level of a request to a route of the given level.
func (b LevelBound) apply(route priority.Level) priority.Level {
	switch i := int(b); {
	case i > 0 && i <= priority.Count:
		return max(route, priority.FromIndex(i-1))
	case i < 0 && i >= -priority.Count:
		return min(route, priority.FromIndex(-i-1))
	}
	return route
}

// APIKey identifies callers by a credential in a header, such as X-API-Key. The
// lookup is asked with the field's whole value; the caller it returns is Verified,
// in the space "key" unless it names another. When lookup leaves Key empty the
// credential itself is the caller's name.
//
// A key lookup does not know is nobody, as is a missing one, one sent twice, one
// over 1 KiB, or one with anything but printable ASCII in it; only the first of
// these reaches lookup. Lookup runs on the request's goroutine with the request's
// context: it must bound its own I/O, and it is asked about made-up keys as often
// as clients care to send them.
//
// A known key costs no allocation beyond lookup's own. APIKey panics when header
// is empty or lookup is nil.
func APIKey(header string, lookup func(ctx context.Context, key string) (Caller, bool)) Identify {
	name := headerName("APIKey", header)
	if lookup == nil {
		panic("admission: APIKey: lookup is nil")
	}
	return func(r *http.Request) (Caller, error) {
		key, ok := onlyValue(r.Header[name])
		if !ok || !printable(key) {
			return Caller{}, nil
		}
		c, ok := lookup(r.Context(), key)
		if !ok {
			return Caller{}, nil
		}
		c.Verified = true
		return c.named(key, spaceKey), nil
	}
}

// Header identifies callers by a header that the service's own gateway sets, such
// as X-User-ID behind an authenticating proxy. Its value is believed: use it only
// where nothing but that gateway can reach this server and the gateway removes
// what clients send under the same name.
//
// A missing header is nobody, as is one sent twice or with control characters in
// it: a gateway that adds its line below the client's would otherwise let clients
// choose. Values over 256 bytes are replaced by their hash. Header panics when
// name is empty.
func Header(name string) Identify {
	name = headerName("Header", name)
	space := spaceHeader + name
	return func(r *http.Request) (Caller, error) {
		value, ok := onlyValue(r.Header[name])
		if !ok || hasControl(value) {
			return Caller{}, nil
		}
		return Caller{Key: boundKey(value), Space: space, Verified: true}, nil
	}
}

// Key identifies callers by any httprate.KeyFunc. The function vouches for what it
// returns: it must not hand on text that clients are free to choose, or each of
// them has as many buckets as it likes. An empty key is nobody. Keys over 256
// bytes are replaced by their hash. Key panics when f is nil.
func Key(f func(*http.Request) (string, error)) Identify {
	if f == nil {
		panic("admission: Key: the function is nil")
	}
	return func(r *http.Request) (Caller, error) {
		key, err := f(r)
		if err != nil || key == "" {
			return Caller{}, err
		}
		return Caller{Key: boundKey(key), Space: spaceCustom, Verified: true}, nil
	}
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

// limitKey is the caller in the terms of the limiters.
func (c Caller) limitKey() ratelimit.Key {
	return ratelimit.Key{Space: c.Space, ID: c.Key, Plan: c.Plan}
}
