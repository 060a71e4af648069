package caller

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5/middleware"
)

// from makes a request whose peer and headers are as given: name, value, name, …
func from(peer string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func addressesOf(t testing.TB, c ClientIP) *Addresses {
	t.Helper()
	a, err := NewAddresses(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A bad entry of the trusted list is an error that names it.
//
// Case ID-16: from reports about client addresses and keys in other limiters
func TestATrustedListThatCannotBeReadIsAnError(t *testing.T) {
	for _, entry := range []string{"10.0.0.0/33", "banana", "", "10.0.0.0/-1", "fe80::1%eth0/64", "10.0.0", "::ffff:10.0.0.0/95"} {
		a, err := NewAddresses(ClientIP{Trusted: []string{"192.0.2.0/24", entry}})
		if a != nil || err == nil {
			t.Fatalf("Trusted %q was accepted", entry)
		}
		for _, want := range []string{"ClientIP.Trusted[1]", fmt.Sprintf("%q", entry)} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Trusted %q: error %q does not contain %s", entry, err, want)
			}
		}
	}
}

func TestEveryBadEntryIsNamed(t *testing.T) {
	_, err := NewAddresses(ClientIP{Trusted: []string{"10.0.0.0/33", "banana"}})
	if err == nil || !strings.Contains(err.Error(), "10.0.0.0/33") || !strings.Contains(err.Error(), "banana") {
		t.Errorf("got %v; want both entries named", err)
	}
}

func TestContradictoryClientIPIsAnError(t *testing.T) {
	proxies := []string{"10.0.0.0/8"}
	for field, c := range map[string]ClientIP{
		"ClientIP.Hops is -1":              {Hops: -1},
		"ClientIP.Hops is 65":              {Hops: 65},
		"ClientIP.IPv6Bits is -1":          {IPv6Bits: -1},
		"ClientIP.IPv6Bits is 129":         {IPv6Bits: 129},
		"Header X-Real-Ip needs Trusted":   {Header: "X-Real-IP"},
		"Hops cannot count entries":        {Header: "X-Real-IP", Trusted: proxies, Hops: 1},
		"Header Forwarded is never read":   {Header: "forwarded"},
		"Header X-Forwarded-For is never ": {Header: "x-forwarded-for"},
	} {
		if _, err := NewAddresses(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: got %v; want an error with %q", c, err, field)
		}
	}
}

func TestNothingIsTrustedByDefault(t *testing.T) {
	a := addressesOf(t, ClientIP{})
	r := from("198.51.100.7:4711",
		"X-Forwarded-For", "1.1.1.1", "X-Real-IP", "2.2.2.2", "True-Client-IP", "3.3.3.3", "Forwarded", "for=4.4.4.4")
	if got := a.Key(r); got != "198.51.100.7" {
		t.Errorf("Key = %q; want the peer", got)
	}
}

func TestWalkStopsAtTheFirstUntrustedAddressFromTheRight(t *testing.T) {
	trusted := ClientIP{Trusted: []string{"10.0.0.0/8", "2001:db8:f::/48", "::ffff:172.16.0.0/108", "192.0.2.9"}}
	for _, tc := range []struct {
		name, peer string
		xff        []string
		want       string
	}{
		{"untrusted peer", "203.0.113.1:1", []string{"1.1.1.1"}, "203.0.113.1"},
		{"no header", "10.0.0.5:1", nil, "10.0.0.5"},
		{"empty header", "10.0.0.5:1", []string{"", " , ,"}, "10.0.0.5"},
		{"one proxy", "10.0.0.5:1", []string{"203.0.113.50"}, "203.0.113.50"},
		{"forged entry on the left", "10.0.0.5:1", []string{"1.1.1.1, 203.0.113.50, 10.0.0.9"}, "203.0.113.50"},
		{"several lines are one list", "10.0.0.5:1", []string{"1.1.1.1", "203.0.113.50", "10.0.0.9"}, "203.0.113.50"},
		{"empty entries are skipped", "10.0.0.5:1", []string{"1.1.1.1,203.0.113.50,, ,10.0.0.9,"}, "203.0.113.50"},
		{"all trusted: the leftmost", "10.0.0.5:1", []string{"10.9.9.9, 10.0.0.9"}, "10.9.9.9"},
		{"garbage left of the client is not read", "10.0.0.5:1", []string{`%%%"<, 203.0.113.50`}, "203.0.113.50"},
		{"garbage where the client should be", "10.0.0.5:1", []string{"1.1.1.1, unknown, 10.0.0.9"}, "10.0.0.5"},
		{"mapped peer", "[::ffff:10.0.0.5]:1", []string{"203.0.113.50"}, "203.0.113.50"},
		{"mapped entry is trusted as IPv4", "10.0.0.5:1", []string{"203.0.113.50, ::ffff:10.0.0.9"}, "203.0.113.50"},
		{"prefix written as mapped", "172.16.3.4:1", []string{"203.0.113.50"}, "203.0.113.50"},
		{"single address is trusted", "192.0.2.9:1", []string{"203.0.113.50"}, "203.0.113.50"},
		{"its neighbour is not", "192.0.2.8:1", []string{"203.0.113.50"}, "192.0.2.8"},
		{"zone is dropped before the check", "10.0.0.5:1", []string{"203.0.113.50, 2001:db8:f::1%eth0"}, "203.0.113.50"},
		{"zone on IPv4 is garbage", "10.0.0.5:1", []string{"203.0.113.50%eth0"}, "10.0.0.5"},
		{"leading zeros are garbage", "10.0.0.5:1", []string{"203.0.113.050"}, "10.0.0.5"},
		{"unbalanced bracket", "10.0.0.5:1", []string{"[2001:db8::7"}, "10.0.0.5"},
		{"IPv4 in brackets", "10.0.0.5:1", []string{"[203.0.113.7]"}, "10.0.0.5"},
		{"text after the bracket", "10.0.0.5:1", []string{"[2001:db8::7]x"}, "10.0.0.5"},
		{"port that is none", "10.0.0.5:1", []string{"203.0.113.7:http"}, "10.0.0.5"},
		{"too many proxies", "10.0.0.5:1", []string{"203.0.113.50" + strings.Repeat(",10.0.0.9", 64)}, "10.0.0.5"},
		{"a megabyte of nothing", "10.0.0.5:1", []string{strings.Repeat("a", 1<<20)}, "10.0.0.5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := from(tc.peer)
			r.Header["X-Forwarded-For"] = tc.xff
			if got := addressesOf(t, trusted).Key(r); got != tc.want {
				t.Errorf("Key = %q; want %q", got, tc.want)
			}
		})
	}
}

// The claims of ID-02 and ID-06 that need no gate.
func TestOneClientHasOneName(t *testing.T) {
	a := addressesOf(t, ClientIP{Trusted: []string{"10.0.0.0/8"}})
	seen := map[string]int{}
	for _, value := range []string{
		"203.0.113.7:52241", "203.0.113.7:52242", "203.0.113.7", "::ffff:203.0.113.7",
		"[2001:db8::7]:443", "[2001:db8::7]", "2001:db8::7", "2001:DB8:0::7", "2001:db8::7%25eth0",
	} {
		seen[a.Key(from("10.0.0.5:1", "X-Forwarded-For", value))]++
	}
	if len(seen) != 2 || seen["203.0.113.7"] != 4 || seen["2001:db8::/64"] != 5 {
		t.Errorf("got %v; want four under the IPv4 address and five under the prefix", seen)
	}
}

func TestIPv6IsGroupedByPrefix(t *testing.T) {
	for bits, want := range map[int]string{
		0: "2001:db8:1:2::/64", 64: "2001:db8:1:2::/64", 56: "2001:db8:1::/56", 128: "2001:db8:1:2::99/128",
	} {
		a := addressesOf(t, ClientIP{IPv6Bits: bits})
		if got := a.Key(from("[2001:db8:1:2::99]:1")); got != want {
			t.Errorf("IPv6Bits %d: Key = %q; want %q", bits, got, want)
		}
	}
}

func TestHopsCountFromTheRight(t *testing.T) {
	const chain = "1.1.1.1, 203.0.113.50, 198.51.100.2"
	for _, tc := range []struct {
		c    ClientIP
		peer string
		want string
	}{
		{ClientIP{Hops: 1}, "192.0.2.1:1", "198.51.100.2"},
		{ClientIP{Hops: 2}, "192.0.2.1:1", "203.0.113.50"},
		{ClientIP{Hops: 4}, "192.0.2.1:1", "192.0.2.1"}, // fewer entries than proxies
		{ClientIP{Hops: 2, Trusted: []string{"192.0.2.0/24"}}, "192.0.2.1:1", "203.0.113.50"},
		{ClientIP{Hops: 2, Trusted: []string{"192.0.2.0/24"}}, "198.18.0.1:1", "198.18.0.1"},
		{ClientIP{Hops: 2}, "@", "203.0.113.50"},
	} {
		if got := addressesOf(t, tc.c).Key(from(tc.peer, "X-Forwarded-For", chain)); got != tc.want {
			t.Errorf("%+v, peer %s: Key = %q; want %q", tc.c, tc.peer, got, tc.want)
		}
	}
}

// A hop that wrote no address is counted, and names no client: what stands left of it
// may be the client's own words. A walk by trusted proxies may skip empty entries.
//
// Case LI-07: tried on the product
func TestAHopThatWroteNothingEndsTheCount(t *testing.T) {
	const peer, claim = "192.0.2.1", "9.9.9.9"
	for _, header := range []string{"X-Forwarded-For", "Forwarded"} {
		entry := func(s string) string {
			if header == "Forwarded" && s != "" && !strings.Contains(s, "=") {
				return "for=" + s
			}
			return s
		}
		for _, tc := range []struct {
			hops  int
			lines [][]string
			want  string
		}{
			{1, [][]string{{claim, ""}}, peer},
			{1, [][]string{{claim}, {""}}, peer},
			{1, [][]string{{claim, " "}}, peer},
			{1, [][]string{{claim, "", ""}}, peer},
			{1, [][]string{{claim, "unknown"}}, peer},
			{1, [][]string{{claim, "_hidden"}}, peer},
			{1, [][]string{{claim, "proto=https"}}, peer},
			{1, [][]string{{""}}, peer},
			{1, nil, peer},
			{2, [][]string{{claim, "203.0.113.50", ""}}, "203.0.113.50"}, // of the outer proxy
			{2, [][]string{{claim, "", "203.0.113.50"}}, peer},
			{2, [][]string{{claim, ""}, {"203.0.113.50"}}, peer},
			{2, [][]string{{claim, "203.0.113.50", "unknown"}}, "203.0.113.50"},
			{2, [][]string{{claim, "unknown", "203.0.113.50"}}, peer},
			{2, [][]string{{claim, "203.0.113.50", "10.0.0.9"}}, "203.0.113.50"},
			{1, [][]string{{"", claim, "203.0.113.50"}}, "203.0.113.50"},
		} {
			r := from(peer + ":1")
			for _, line := range tc.lines {
				for i := range line {
					line[i] = entry(line[i])
				}
				r.Header.Add(header, strings.Join(line, ","))
			}
			if got := addressesOf(t, ClientIP{Hops: tc.hops, Header: header}).Key(r); got != tc.want {
				t.Errorf("%d hops, %s %q: Key = %q; want %q", tc.hops, header, r.Header[header], got, tc.want)
			}
		}
		if got := addressesOf(t, ClientIP{Trusted: []string{peer}, Header: header}).Key(from(peer+":1", header, entry(claim)+",")); got != claim {
			t.Errorf("by trusted proxies, %s: Key = %q; want the empty entry skipped", header, got)
		}
	}
}

// Addresses behind a translator share a prefix and are clients of their own, and none
// is trusted for the IPv4 address that it stands for.
//
// Case LI-06: tried on the product
func TestTranslatedAddressesAreCountedOneByOne(t *testing.T) {
	a := addressesOf(t, ClientIP{})
	for addr, want := range map[string]string{
		"64:ff9b::c000:201":       "192.0.2.1",
		"64:ff9b::c000:202":       "192.0.2.2",
		"64:ff9b::192.0.2.2":      "192.0.2.2",
		"::ffff:192.0.2.1":        "192.0.2.1",
		"::ffff:0:192.0.2.1":      "192.0.2.1",
		"64:ff9b:1::c000:201":     "64:ff9b:1::c000:201/128",
		"64:ff9b:1:2:0:3::":       "64:ff9b:1:2:0:3::/128",
		"64:ff9b:2::1":            "64:ff9b:2::/64",
		"2002:c000:201:1::1":      "2002:c000:201::/48",
		"2002:c000:201:ffff::2":   "2002:c000:201::/48",
		"2002:c000:202::1":        "2002:c000:202::/48",
		"::192.0.2.1":             "::/64", // v4-compatible: never on a wire
		"2001:0:4136:e378:8000::": "2001:0:4136:e378::/64",
	} {
		if got := a.Key(from("[" + addr + "]:1")); got != want {
			t.Errorf("%s: Key = %q; want %q", addr, got, want)
		}
		proxied := addressesOf(t, ClientIP{Trusted: []string{"198.51.100.1"}})
		if got := proxied.Key(from("198.51.100.1:1", "X-Forwarded-For", addr)); got != want {
			t.Errorf("%s forwarded: Key = %q; want %q", addr, got, want)
		}
	}
	trusting := addressesOf(t, ClientIP{Trusted: []string{"10.0.0.0/8"}})
	if got := trusting.Key(from("[64:ff9b::a00:5]:1", "X-Forwarded-For", "9.9.9.9")); got != "10.0.0.5" {
		t.Errorf("a translated peer was trusted as 10.0.0.5: Key = %q", got)
	}
}

func TestNamedHeaderHoldsOneAddress(t *testing.T) {
	a := addressesOf(t, ClientIP{Header: "x-real-ip", Trusted: []string{"10.0.0.0/8"}})
	for _, tc := range []struct {
		peer   string
		values []string
		want   string
	}{
		{"10.0.0.5:1", []string{"203.0.113.7"}, "203.0.113.7"},
		{"10.0.0.5:1", []string{"1.1.1.1", "203.0.113.7"}, "203.0.113.7"},
		{"10.0.0.5:1", []string{"1.1.1.1, 203.0.113.7"}, "10.0.0.5"},
		{"10.0.0.5:1", nil, "10.0.0.5"},
		{"203.0.113.1:1", []string{"1.1.1.1"}, "203.0.113.1"},
	} {
		r := from(tc.peer)
		r.Header["X-Real-Ip"] = tc.values
		if got := a.Key(r); got != tc.want {
			t.Errorf("%s %q: Key = %q; want %q", tc.peer, tc.values, got, tc.want)
		}
	}
}

func TestForwardedIsReadAsRFC7239Says(t *testing.T) {
	a := addressesOf(t, ClientIP{Header: "Forwarded", Trusted: []string{"10.0.0.0/8"}})
	for _, tc := range []struct{ value, want string }{
		{"for=203.0.113.50", "203.0.113.50"},
		{"For=203.0.113.50;proto=http;by=203.0.113.43", "203.0.113.50"},
		{`for="203.0.113.50:4711"`, "203.0.113.50"},
		{`for="[2001:db8:cafe::17]:4711"`, "2001:db8:cafe::/64"},
		{`for="[2001:db8:cafe::17]:_port"`, "2001:db8:cafe::/64"},
		{"for=1.1.1.1, for=203.0.113.50, for=10.0.0.9", "203.0.113.50"},
		{`for=203.0.113.50;host="a,b;for=1.1.1.1"`, "203.0.113.50"},
		{`host="a\",b";for=203.0.113.50`, "203.0.113.50"},
		{`for=1.1.1.1;x=", for=203.0.113.50`, "203.0.113.50"},              // the proxy's part is right of the client's open quote
		{`for=1.1.1.1;x=", for="[2001:db8::1]"`, "2001:db8::/64"},          // and may bring quotes of its own
		{`for=1.1.1.1;x="\, for=203.0.113.50;by=10.0.0.9`, "203.0.113.50"}, // an open escape as well
		{"for=unknown", "10.0.0.5"},
		{"for=_hidden", "10.0.0.5"},
		{"proto=https", "10.0.0.5"},
		{"for=203.0.113.50;for=1.1.1.1", "10.0.0.5"},
		{`for="203.0.113.50`, "10.0.0.5"},
		{`for="203.0.113\.50"`, "10.0.0.5"},
		{"for=", "10.0.0.5"},
		{"203.0.113.50", "10.0.0.5"},
	} {
		if got := a.Key(from("10.0.0.5:1", "Forwarded", tc.value)); got != tc.want {
			t.Errorf("Forwarded %s: Key = %q; want %q", tc.value, got, tc.want)
		}
	}
}

func TestPeersWithoutAnAddressShareOneName(t *testing.T) {
	a := addressesOf(t, ClientIP{Trusted: []string{"10.0.0.0/8"}})
	for _, peer := range []string{"", "@", "/run/app.sock", "garbage"} {
		if got := a.Key(from(peer, "X-Forwarded-For", "1.1.1.1")); got != "no-address" {
			t.Errorf("peer %q: Key = %q", peer, got)
		}
	}
}

func TestUnixPeersAreTrustedOnlyWhenListedAndReal(t *testing.T) {
	a := addressesOf(t, ClientIP{Trusted: []string{"unix"}})
	r := from("@", "X-Forwarded-For", "203.0.113.7")
	if got := a.Key(r); got != "no-address" {
		t.Errorf("a peer that only looks like a socket: Key = %q", got)
	}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Net: "unix", Name: "/run/app.sock"})))
	if got := a.Key(r); got != "203.0.113.7" {
		t.Errorf("a peer on a Unix socket: Key = %q", got)
	}
	if got := addressesOf(t, ClientIP{Trusted: []string{"10.0.0.0/8"}}).Key(r); got != "no-address" {
		t.Errorf("unix not listed: Key = %q", got)
	}
}

func TestAddrIsTheWholeAddress(t *testing.T) {
	a := addressesOf(t, ClientIP{})
	if got := a.Addr(from("[2001:db8::7%eth0]:1")); got != netip.MustParseAddr("2001:db8::7") {
		t.Errorf("Addr = %v", got)
	}
	if c, err := a.Identify(from("192.0.2.1:1")); err != nil || c != (Caller{Key: "192.0.2.1", Space: "addr"}) {
		t.Errorf("Identify = %+v, %v", c, err)
	}
}

func TestAddressKeyAllocatesNothingForIPv4(t *testing.T) {
	direct, proxied := addressesOf(t, ClientIP{}), addressesOf(t, ClientIP{Trusted: []string{"10.0.0.0/8"}})
	peer, behind := from("203.0.113.7:52241"), from("10.0.0.5:1", "X-Forwarded-For", "1.1.1.1, 203.0.113.7, 10.0.0.9")
	if n := testing.AllocsPerRun(100, func() { direct.Key(peer) }); n != 0 {
		t.Errorf("peer: %v allocs", n)
	}
	if n := testing.AllocsPerRun(100, func() { proxied.Key(behind) }); n != 0 {
		t.Errorf("behind a proxy: %v allocs", n)
	}
	six := from("[2001:db8::7]:1")
	if n := testing.AllocsPerRun(100, func() { direct.Key(six) }); n > 1 {
		t.Errorf("IPv6: %v allocs", n)
	}
}

// Where chi's middleware names a client, we name the same one, but for empty entries
// in a count of hops.
func TestClientsAgreeWithChi(t *testing.T) {
	prefixes := []string{"10.0.0.0/8", "2001:db8:f::/48"}
	readers := []struct {
		name string
		ours ClientIP
		chi  func(http.Handler) http.Handler
	}{
		{"remote", ClientIP{}, middleware.ClientIPFromRemoteAddr},
		{"xff", ClientIP{Trusted: prefixes}, middleware.ClientIPFromXFF(prefixes...)},
		{"hops", ClientIP{Hops: 2}, middleware.ClientIPFromXFFTrustedProxies(2)},
		{"header", ClientIP{Trusted: prefixes, Header: "X-Real-IP"}, middleware.ClientIPFromHeader("X-Real-IP", prefixes...)},
	}
	texts := []string{
		"", "203.0.113.7", "10.0.0.9", "1.1.1.1, 203.0.113.7", "203.0.113.7, 10.0.0.9", "2001:db8::7", "2001:db8:f::3",
		"::ffff:203.0.113.7", "203.0.113.7, ::ffff:10.0.0.9", "203.0.113.7, 2001:db8:f::3%eth0", "banana", "banana, 203.0.113.7",
		"203.0.113.7, banana", ",,203.0.113.7,,", "203.0.113.07", "fe80::1%", "1.1.1.1%x",
	}
	for _, reader := range readers {
		ours, agreed := addressesOf(t, reader.ours), 0
		for _, peer := range []string{"10.0.0.5:1", "192.0.2.1:1", "[2001:db8:f::1]:1", "[::ffff:10.0.0.5]:1", "@"} {
			for _, first := range texts {
				for _, second := range texts {
					r := from(peer, "X-Forwarded-For", first, "X-Forwarded-For", second, "X-Real-IP", first, "X-Real-IP", second)
					chi := chiClient(reader.chi, r)
					if !chi.IsValid() || reader.ours.Hops > 0 && slices.Contains(strings.Split(first+","+second, ","), "") {
						continue // chi skips empty entries in a count too
					}
					agreed++
					if got := ours.Addr(r); got != chi {
						t.Errorf("%s: peer %s, %q, %q: Addr = %v, chi says %v", reader.name, peer, first, second, got, chi)
					}
				}
			}
		}
		if agreed < 500 {
			t.Errorf("%s: compared only %d requests", reader.name, agreed)
		}
	}
}

// chiClient runs a chi middleware and returns the address it found.
func chiClient(mw func(http.Handler) http.Handler, r *http.Request) (found netip.Addr) {
	mw(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		found = middleware.GetClientIPAddr(r.Context())
	})).ServeHTTP(httptest.NewRecorder(), r)
	return found
}
