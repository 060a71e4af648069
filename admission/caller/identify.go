package caller

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

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
