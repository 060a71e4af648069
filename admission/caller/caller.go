// Package caller says who sent a request: by a credential, a header of the service's
// own gateway, any function that returns a key, or the client's address, which may
// stand in a header that proxies set. It knows no gate and no limit.
//
//	admission.Options{Tenant: caller.APIKey("X-API-Key", lookup)}
package caller

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

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
	Weight   int        // slot time beside other callers of its level; zero: its plan's; counts for verified callers only
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

// Identify says who sent a request. It runs once per request, before anything is
// charged, on the request's own goroutine; it must be safe for concurrent use, and
// it must not read the body. A zero Caller means that the caller is unknown
// and is no refusal. An error refuses the request as unidentified; its text never
// reaches the client. An error that is or wraps an *admission.Rejection is answered as
// that rejection says.
type Identify func(*http.Request) (Caller, error)

// APIKey identifies callers by a credential in a header, such as X-API-Key. The
// lookup is asked with the field's whole value; the caller it returns is Verified,
// in the space "key" unless it names another. When lookup leaves Key empty the
// credential itself is the caller's name.
//
// A key that lookup does not know is an unknown caller, as is a missing one, one sent twice, one
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
		panic("caller: APIKey: lookup is nil")
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
// A missing header is an unknown caller, as is one sent twice or with control characters in
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

// KeyFunc identifies callers by any httprate.KeyFunc. What the function returns is believed: it must not hand on text that clients are free to choose, or each of
// them has as many buckets as it likes. An empty key is an unknown caller. Keys over 256
// bytes are replaced by their hash. KeyFunc panics when f is nil.
func KeyFunc(f func(*http.Request) (string, error)) Identify {
	if f == nil {
		panic("caller: KeyFunc: the function is nil")
	}
	return func(r *http.Request) (Caller, error) {
		key, err := f(r)
		if err != nil || key == "" {
			return Caller{}, err
		}
		return Caller{Key: boundKey(key), Space: spaceCustom, Verified: true}, nil
	}
}

// The most bytes of a name that is stored, and of a credential that is looked up.
const (
	maxKey        = 256
	maxCredential = 1 << 10
	hashPrefix    = "sha256:"
)

// boundKey returns s itself, or the hash of an s that is too long to keep. Text
// that looks like such a hash is hashed as well, so that no short name can stand
// for a long one.
func boundKey(s string) string {
	if len(s) <= maxKey && !strings.HasPrefix(s, hashPrefix) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return hashPrefix + base64.RawURLEncoding.EncodeToString(sum[:])
}

// onlyValue returns the value of a field that was sent exactly once. A field sent
// twice says nothing: there is no telling which line was meant.
func onlyValue(values []string) (string, bool) {
	if len(values) != 1 || values[0] == "" {
		return "", false
	}
	return values[0], true
}

// printable reports whether s may be a credential.
func printable(s string) bool {
	if len(s) > maxCredential {
		return false
	}
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		// The lowest byte that is not printable sets its high bit in one of the three:
		// below it nothing is carried or borrowed.
		if (w|(w+each)|(w-' '*each))&high != 0 {
			return false
		}
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func hasControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

func headerName(caller, name string) string {
	if name == "" {
		panic("caller: " + caller + ": the header's name is empty")
	}
	return http.CanonicalHeaderKey(name)
}
