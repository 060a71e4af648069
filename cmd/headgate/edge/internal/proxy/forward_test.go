package proxy

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate-go/headgate/admission/caller"
)

// told returns what the upstream hears about a request with the given lines.
func told(t *testing.T, ip caller.ClientIP, peer string, secure bool, lines ...string) http.Header {
	t.Helper()
	addresses, err := caller.NewAddresses(ip)
	if err != nil {
		t.Fatal(err)
	}
	in := httptest.NewRequest("GET", "http://shop.example/", nil)
	in.RemoteAddr = peer
	if secure {
		in.TLS = new(tls.ConnectionState)
	}
	for i := 0; i < len(lines); i += 2 {
		in.Header.Add(lines[i], lines[i+1])
	}
	out := in.Header.Clone()
	field := http.CanonicalHeaderKey(cmp.Or(ip.Header, forField))
	forward{InForce: InForce{Addresses: addresses, AddressField: field, Methods: true}}.apply(in, out)
	return out
}

// Case ED-05: tried on the product
func TestTheUpstreamHearsWhatIsKnownAndNothingMadeUp(t *testing.T) {
	listed := caller.ClientIP{Trusted: []string{"10.0.0.0/8", "fd00::/8"}}
	realIP := caller.ClientIP{Trusted: []string{"10.0.0.0/8"}, Header: "X-Real-IP"}
	standard := caller.ClientIP{Trusted: []string{"10.0.0.0/8"}, Header: "Forwarded"}
	counted := caller.ClientIP{Hops: 2}
	for _, c := range []struct {
		name                          string
		ip                            caller.ClientIP
		peer                          string
		secure                        bool
		lines                         []string
		addresses, host, proto, forms string
	}{
		{"a stranger", caller.ClientIP{}, "192.0.2.1:5", false,
			[]string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "evil", "Forwarded", "for=1.1.1.1;proto=https;host=evil"},
			"192.0.2.1", "shop.example", "http", `for=192.0.2.1;host="shop.example";proto=http`},
		{"a stranger over TLS", caller.ClientIP{}, "192.0.2.1:5", true, nil,
			"192.0.2.1", "shop.example", "https", `for=192.0.2.1;host="shop.example";proto=https`},
		{"a stranger beside trusted proxies", listed, "192.0.2.1:5", false,
			[]string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-Proto", "https"},
			"192.0.2.1", "shop.example", "http", `for=192.0.2.1;host="shop.example";proto=http`},
		{"a trusted proxy", listed, "10.0.0.1:5", false,
			[]string{"X-Forwarded-For", "1.1.1.1, 203.0.113.9", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "www.example"},
			"203.0.113.9, 10.0.0.1", "www.example", "https", `for=203.0.113.9;host="www.example";proto=https, for=10.0.0.1`},
		{"two trusted proxies, on two lines", listed, "10.0.0.1:5", false,
			[]string{"X-Forwarded-For", "1.1.1.1, 203.0.113.9", "X-Forwarded-For", "10.2.0.1"},
			"203.0.113.9, 10.2.0.1, 10.0.0.1", "shop.example", "http", `for=203.0.113.9;host="shop.example";proto=http, for=10.2.0.1, for=10.0.0.1`},
		{"a trusted proxy that says nothing", listed, "10.0.0.1:5", false, nil,
			"10.0.0.1", "shop.example", "http", `for=10.0.0.1;host="shop.example";proto=http`},
		{"words that are none", listed, "10.0.0.1:5", false,
			[]string{"X-Forwarded-For", "203.0.113.9", "X-Forwarded-Proto", "javascript", "X-Forwarded-Host", `a"b c`},
			"203.0.113.9, 10.0.0.1", "shop.example", "http", `for=203.0.113.9;host="shop.example";proto=http, for=10.0.0.1`},
		{"a client that came first in a list of words", listed, "10.0.0.1:5", false,
			[]string{"X-Forwarded-For", "203.0.113.9", "X-Forwarded-Proto", "https, http", "X-Forwarded-Host", "evil, www.example"},
			"203.0.113.9, 10.0.0.1", "www.example", "http", `for=203.0.113.9;host="www.example";proto=http, for=10.0.0.1`},
		{"one header of one address", realIP, "10.0.0.1:5", false,
			[]string{"X-Real-IP", "203.0.113.9", "X-Forwarded-For", "1.1.1.1", "X-Forwarded-Proto", "https"},
			"203.0.113.9, 10.0.0.1", "shop.example", "https", `for=203.0.113.9;host="shop.example";proto=https, for=10.0.0.1`},
		{"RFC 7239", standard, "10.0.0.1:5", false,
			[]string{"Forwarded", `for=1.1.1.1;proto=http, for="203.0.113.9:80";proto=https;host="www.example"`, "X-Forwarded-For", "2.2.2.2", "X-Forwarded-Host", "evil"},
			"203.0.113.9, 10.0.0.1", "www.example", "https", `for=203.0.113.9;host="www.example";proto=https, for=10.0.0.1`},
		{"proxies that are counted", counted, "192.0.2.1:5", false,
			[]string{"X-Forwarded-For", "1.1.1.1, 203.0.113.9, 198.51.100.1", "X-Forwarded-Proto", "https"},
			"203.0.113.9, 198.51.100.1, 192.0.2.1", "shop.example", "https", `for=203.0.113.9;host="shop.example";proto=https, for=198.51.100.1, for=192.0.2.1`},
		{"IPv6", listed, "[fd00::1]:5", false,
			[]string{"X-Forwarded-For", "[2001:db8::7]:443"},
			"2001:db8::7, fd00::1", "shop.example", "http", `for="[2001:db8::7]";host="shop.example";proto=http, for="[fd00::1]"`},
		{"a peer without an address", caller.ClientIP{}, "@", false, []string{"X-Forwarded-For", "1.1.1.1"},
			"", "shop.example", "http", `host="shop.example";proto=http`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := told(t, c.ip, c.peer, c.secure, c.lines...)
			for field, want := range map[string]string{
				"X-Forwarded-For": c.addresses, "X-Forwarded-Host": c.host, "X-Forwarded-Proto": c.proto, "Forwarded": c.forms,
			} {
				if got := h.Get(field); got != want || len(h[field]) > 1 {
					t.Errorf("%s: %q, want %q", field, h[field], want)
				}
			}
		})
	}
}

func TestNoOtherFieldSpeaksForAClient(t *testing.T) {
	var lines []string
	for name := range claims {
		lines = append(lines, name, "made-up")
	}
	lines = append(lines, "X-Forwarded-Port", "1", "X-Forwarded-Prefix", "/x", "X-Forwarded-Ssl", "on", "X-Forwarded-Anything", "x", "X-Other", "stays")
	listed := caller.ClientIP{Trusted: []string{"10.0.0.0/8"}}
	real := caller.ClientIP{Trusted: []string{"10.0.0.0/8"}, Header: "CF-Connecting-IP"}
	for _, c := range []struct {
		name, peer string
		ip         caller.ClientIP
		kept       []string
	}{
		{"a stranger", "192.0.2.1:1", listed, nil},
		{"a trusted proxy", "10.0.0.1:1", listed, []string{"X-Forwarded-Port", "X-Forwarded-Prefix"}},
		{"a stranger that names the field in use", "192.0.2.1:1", real, []string{"Cf-Connecting-Ip"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := told(t, c.ip, c.peer, false, lines...)
			if got := h.Get("X-Other"); got != "stays" {
				t.Errorf("X-Other: %q", got)
			}
			for _, name := range c.kept {
				if h.Get(name) == "" {
					t.Errorf("%s is gone", name)
				}
			}
			delete(h, "X-Other")
			for name, values := range h {
				for _, v := range values {
					if v == "made-up" || v == "on" || v == "x" {
						t.Errorf("%s: %s came through", name, v)
					}
				}
			}
			if len(h) != 4+len(c.kept) {
				t.Errorf("the upstream hears %v", h)
			}
		})
	}
}
