package admission

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// FirstOf asks each identity in turn and returns the first verified caller. When
// none is verified it returns the first that has a name at all, else nobody. An
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
// verified or addresses. When a part is nobody, or is text that nothing vouches
// for, the whole is nobody: a tenant cannot multiply its buckets by varying a
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

// What a name may cost whoever stores it, and a credential whoever looks it up.
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
		panic("admission: " + caller + ": the header's name is empty")
	}
	return http.CanonicalHeaderKey(name)
}

func mustIdentify(caller string, ids []Identify) {
	if len(ids) == 0 {
		panic("admission: " + caller + " needs at least one identity")
	}
	for _, id := range ids {
		if id == nil {
			panic("admission: " + caller + ": an identity is nil")
		}
	}
}
