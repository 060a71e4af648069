package caller

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Addresses finds the address a request came from, as a [ClientIP] says. Make one
// with [NewAddresses]. It is read-only and safe for concurrent use. One lookup
// reads at most 64 entries of a header.
type Addresses struct {
	trusted []netip.Prefix
	unix    bool   // peers on a Unix socket are trusted
	anyPeer bool   // every peer is a proxy
	direct  bool   // no header is ever read
	single  bool   // the header holds one address
	hops    int    // 0: walk by trusted
	header  string // canonical
	bits    int
}

// Addr returns the client's address in full. It is the zero Addr when the peer has
// none, as on a Unix socket.
func (a *Addresses) Addr(r *http.Request) netip.Addr { return a.find(r).addr }

// Key returns the name under which the client is counted: an IPv4 address, or an
// IPv6 prefix such as "2001:db8::/64". Behind a translator (NAT64) every address is a
// client of its own, the IPv4 one where the prefix is the well-known one; a site on
// 6to4 is one client. Peers without an address, as on a Unix socket, share one name.
// An IPv4 address costs no allocation, a prefix one.
func (a *Addresses) Key(r *http.Request) string {
	h := a.find(r)
	switch {
	case h.text != "":
		return h.text
	case !h.addr.IsValid():
		return "no-address"
	case h.addr.Is4():
		return h.addr.String()
	}
	addr, bits := owned(h.addr, a.bits)
	if addr.Is4() {
		return addr.String()
	}
	var stack [64]byte
	p, _ := addr.Prefix(bits) // bits were checked at set-up
	return string(p.AppendTo(stack[:0]))
}

// Prefixes whose addresses stand for IPv4 ones.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215: where IPv4 stands is the operator's choice
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056: a /48 for each IPv4 address
)

// owned returns what part of an IPv6 address is one client's: addr's first bits, or an
// IPv4 address. It is for counting only: what is trusted is compared as it was
// written, since a translator may stand in front of any network.
func owned(addr netip.Addr, bits int) (netip.Addr, int) {
	switch {
	case nat64.Contains(addr), translated.Contains(addr):
		b := addr.As16()
		return netip.AddrFrom4([4]byte(b[12:])), 32
	case localNAT64.Contains(addr):
		return addr, addr.BitLen()
	case sixToFour.Contains(addr):
		return addr, min(bits, 48)
	}
	return addr, bits
}

// TrustsPeer reports whether the connection comes from a trusted proxy, so that the
// header fields that only proxies set are its words and no client's.
func (a *Addresses) TrustsPeer(r *http.Request) bool {
	if a.direct {
		return false
	}
	peer, _ := parseHost(r.RemoteAddr)
	return a.trustsPeer(peer.addr, r)
}

// Identify names callers by their address. An address is observed and not
// confirmed, so the caller is not Verified: Options.Anonymous limits it.
func (a *Addresses) Identify(r *http.Request) (Caller, error) {
	return OfAddress(a.Key(r)), nil
}

// host is an address as it was written.
type host struct {
	addr netip.Addr // folded
	text string     // its canonical spelling, where that was at hand; an identity only for IPv4
}

// find returns the client's host: the peer's unless a trusted one says otherwise.
func (a *Addresses) find(r *http.Request) host {
	peer, _ := parseHost(r.RemoteAddr)
	if a.direct || !a.trustsPeer(peer.addr, r) {
		return peer
	}
	if client, ok := a.claimed(r.Header[a.header]); ok {
		return client
	}
	return peer
}

func (a *Addresses) trustsPeer(peer netip.Addr, r *http.Request) bool {
	if !peer.IsValid() {
		return a.anyPeer || a.unix && onUnixSocket(r)
	}
	return a.anyPeer || a.trusts(peer)
}

func (a *Addresses) trusts(addr netip.Addr) bool {
	for _, p := range a.trusted {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// onUnixSocket asks the server rather than RemoteAddr, which some middleware fills
// with text from the request.
func onUnixSocket(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && local.Network() == "unix"
}

// claimed returns the client that a trusted peer's header names, and whether it
// names one.
func (a *Addresses) claimed(lines []string) (host, bool) {
	if a.single {
		if len(lines) == 0 {
			return host{}, false
		}
		return parseHost(lines[len(lines)-1])
	}
	walk := entries{lines: lines, quoted: a.header == forwarded, empty: a.hops > 0}
	if a.hops > 0 {
		return a.counted(&walk)
	}
	return a.firstUntrusted(&walk)
}

// counted returns the entry that the outermost of the counted proxies wrote. Those
// of the proxies behind it are not looked at, but an empty one counts: skipped, the
// count would end at what the client itself sent.
func (a *Addresses) counted(walk *entries) (host, bool) {
	for range a.hops - 1 {
		walk.next()
	}
	entry, ok := walk.next()
	if !ok {
		return host{}, false
	}
	return a.parseEntry(entry)
}

// firstUntrusted returns the first address that is no trusted proxy, or the
// leftmost when all are.
func (a *Addresses) firstUntrusted(walk *entries) (client host, ok bool) {
	for range maxHops {
		entry, more := walk.next()
		if !more {
			return client, ok
		}
		if client, ok = a.parseEntry(entry); !ok || !a.trusts(client.addr) {
			return client, ok
		}
	}
	return host{}, false
}

func (a *Addresses) parseEntry(entry string) (host, bool) {
	if a.header != forwarded {
		return parseHost(entry)
	}
	node, ok := forwardedNode(entry)
	if !ok {
		return host{}, false
	}
	return parseHost(node)
}

// The longest spelling of an address, brackets, a zone and a port included, that
// anybody writes.
const maxHostText = 96

// parseHost reads an address with or without a port: 192.0.2.1, 192.0.2.1:80,
// 2001:db8::1, [2001:db8::1], [2001:db8::1]:80.
func parseHost(s string) (host, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > maxHostText {
		return host{}, false
	}
	bracketed := s[0] == '['
	if bracketed {
		end := strings.IndexByte(s, ']')
		if end < 0 || !isPort(s[end+1:]) {
			return host{}, false
		}
		s = s[1:end]
	} else if i := strings.IndexByte(s, ':'); i >= 0 && i == strings.LastIndexByte(s, ':') {
		if !isPort(s[i:]) {
			return host{}, false
		}
		s = s[:i]
	}
	return parseAddr(s, bracketed)
}

// parseAddr parses a bare address. The zone is cut before netip would intern it:
// it is the client's text, and it is dropped anyway.
func parseAddr(s string, only6 bool) (host, bool) {
	bare, zone, zoned := strings.Cut(s, "%")
	addr, err := netip.ParseAddr(bare)
	if err != nil || addr.Is4() && (zoned || only6) || zoned && zone == "" {
		return host{}, false
	}
	if addr.Is4() {
		return host{addr, bare}, true // IPv4 has one spelling
	}
	return host{addr: fold(addr)}, true
}

// isPort accepts nothing, or a colon and a port as RFC 7239 allows it: digits, or
// an obfuscated name.
func isPort(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) < 2 {
		return false
	}
	return s[1] == '_' || strings.Trim(s[1:], "0123456789") == ""
}
