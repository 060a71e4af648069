package caller

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// rightmostUntrusted is the walk in its plainest form: all lines joined, split at
// commas, read from the right. It reports false where an entry on the way is no
// plain address.
func rightmostUntrusted(lines []string, trusted func(netip.Addr) bool) (client netip.Addr, ok bool) {
	parts := strings.Split(strings.Join(lines, ","), ",")
	slices.Reverse(parts)
	n := 0
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		addr, err := netip.ParseAddr(part)
		if n++; err != nil || n > maxHops || len(part) > maxHostText {
			return netip.Addr{}, false
		}
		client = addr.WithZone("").Unmap()
		if !trusted(client) {
			return client, true
		}
	}
	return client, n > 0
}

func FuzzForwardingHeaders(f *testing.F) {
	f.Add("10.0.0.5:1", "1.1.1.1, 203.0.113.50", "10.0.0.9")
	f.Add("10.0.0.5:1", `for=1.1.1.1;x=", for="[2001:db8::1]:80"`, "for=10.0.0.9;by=_x")
	f.Add("203.0.113.1:1", "1.1.1.1", "")
	f.Add("[::ffff:10.0.0.5%eth0]:1", "2001:db8::7%eth0", "::ffff:10.1.2.3")
	f.Add("@", ",,,", "unknown")
	trusted := ClientIP{Trusted: []string{"10.0.0.0/8", "2001:db8:f::/48"}}
	rfc := trusted
	rfc.Header = "Forwarded"
	single := trusted
	single.Header = "X-Real-IP"
	readers := []*Addresses{
		addressesOf(f, trusted), addressesOf(f, rfc), addressesOf(f, single), addressesOf(f, ClientIP{Hops: 2}), addressesOf(f, ClientIP{}),
	}
	f.Fuzz(func(t *testing.T, peer, first, second string) {
		lines := []string{first, second}
		r := &http.Request{RemoteAddr: peer, Header: http.Header{
			"X-Forwarded-For": lines, "Forwarded": lines, "X-Real-Ip": lines,
		}}
		direct := readers[4].Addr(r)
		for i, a := range readers {
			got := a.Addr(r)
			if got.Zone() != "" || got.Is4In6() {
				t.Errorf("reader %d: %v is not folded", i, got)
			}
			if key := a.Key(r); key == "" || len(key) > 64 {
				t.Errorf("reader %d: Key = %q", i, key)
			}
			if !a.anyPeer && !a.trusts(direct) && got != direct {
				t.Errorf("reader %d: peer %q is not trusted, but its claim %v was", i, peer, got)
			}
		}
		a := readers[0]
		if want, ok := rightmostUntrusted(lines, a.trusts); ok && a.trusts(direct) {
			if got := a.Addr(r); got != want {
				t.Errorf("%q: Addr = %v; want %v", lines, got, want)
			}
		}
	})
}

// What a proxy appends cannot be disturbed by what its client sent before.
func FuzzForwardedPrefixIsHarmless(f *testing.F) {
	f.Add(`for=1.1.1.1`)
	f.Add(`for=1.1.1.1;x="`)
	f.Add(`x="\`)
	f.Add(`"",",`)
	a := addressesOf(f, ClientIP{Header: "Forwarded", Trusted: []string{"10.0.0.0/8"}})
	f.Fuzz(func(t *testing.T, sent string) {
		for _, added := range []string{"for=203.0.113.50", `for="203.0.113.50:80";proto=https`, `by=10.0.0.9;for="203.0.113.50"`} {
			for _, lines := range [][]string{{sent + ", " + added}, {sent, added}, {sent + ", " + added + ", for=10.0.0.9"}} {
				r := &http.Request{RemoteAddr: "10.0.0.5:1", Header: http.Header{"Forwarded": lines}}
				if got := a.Key(r); got != "203.0.113.50" {
					t.Errorf("%q: Key = %q", lines, got)
				}
			}
		}
	})
}

func FuzzJoinIsInjective(f *testing.F) {
	f.Add("a", "bc", "ab", "c")
	f.Add("1:a", "b", "1", "a1:b")
	f.Add("", "a", "a", "")
	f.Add(strings.Repeat("x", 300), "a", "a", strings.Repeat("x", 300))
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		key := func(space, name string) string {
			// A part without a name makes the whole nobody, so each has one.
			joint, err := Join(is(Caller{Space: space, Key: "k" + name, Verified: true}), is(ann))(nil)
			if err != nil || joint.Key == "" || len(joint.Key) > maxKey {
				t.Fatalf("%q, %q: %+v, %v", space, name, joint, err)
			}
			return joint.Key
		}
		if same := a == c && b == d; (key(a, b) == key(c, d)) != same {
			t.Errorf("(%q, %q) and (%q, %q): same key %v", a, b, c, d, !same)
		}
		lists := joined("k"+a, "k"+b) == joined("k"+c, "k"+d)
		if lists != (a == c && b == d) {
			t.Errorf("lists %q %q and %q %q: same key %v", a, b, c, d, lists)
		}
		if joined("k"+a, "k"+b) == joined("k"+c) {
			t.Errorf("lists of two and one make the same key")
		}
	})
}
