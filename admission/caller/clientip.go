package caller

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// ClientIP says how the address of a client is found. It is configuration; compile
// it with [NewAddresses]. The zero value trusts no header: the client is the peer
// of the connection, and every forwarding header is ignored.
//
// Behind proxies, name them in Trusted. The connection's peer is checked first;
// when it is one of them, the header is read from right to left over all its
// lines, skipping trusted proxies, and the first address that is none is the
// client. When all are trusted the leftmost is. Empty entries are skipped. What cannot
// be read ends the walk, and the client is the peer: fewer buckets than there are
// clients, never more.
type ClientIP struct {
	// Trusted lists the service's own proxies as CIDR prefixes or single
	// addresses. The entry "unix" trusts every peer on a Unix socket.
	Trusted []string

	// Hops is the number of proxies between the clients and this server, for
	// proxies whose addresses cannot be listed: the client is that many entries
	// from the right, and an empty entry counts. Where that one holds no address, the
	// client is the peer. Without Trusted every peer is taken for the last proxy, so
	// nothing else may be able to reach this server. Zero reads by Trusted.
	Hops int

	// Header is the header to read. Empty means X-Forwarded-For; "Forwarded" is
	// read as RFC 7239 says. Any other name is a header that holds one address and
	// that the proxies overwrite on every request, such as X-Real-IP; its last
	// line counts, and it needs Trusted.
	Header string

	// IPv6Bits is how much of an IPv6 address makes an identity, since one client
	// commonly owns a whole prefix. Zero means 64. Addresses of translators (NAT64)
	// are counted one by one, and sites on 6to4 by 48 bits at most.
	IPv6Bits int
}

const (
	forwardedFor = "X-Forwarded-For"
	forwarded    = "Forwarded"
	unixPeers    = "unix"
	ipv6Bits     = 64
	maxHops      = 64 // proxies in a row, and entries read of one header
)

// NewAddresses checks c and compiles it. The error names the field, and the entry
// of Trusted that cannot be read.
func NewAddresses(c ClientIP) (*Addresses, error) {
	a, err := c.compile()
	if err != nil {
		return nil, fmt.Errorf("caller: %w", err)
	}
	return a, nil
}

func (c ClientIP) compile() (*Addresses, error) {
	a := &Addresses{
		direct:  len(c.Trusted) == 0 && c.Hops == 0,
		anyPeer: len(c.Trusted) == 0 && c.Hops > 0,
		hops:    c.Hops,
		header:  http.CanonicalHeaderKey(cmp.Or(c.Header, forwardedFor)),
		bits:    cmp.Or(c.IPv6Bits, ipv6Bits),
	}
	a.single = a.header != forwardedFor && a.header != forwarded
	if err := errors.Join(a.trust(c.Trusted), a.check(c)); err != nil {
		return nil, err
	}
	return a, nil
}

// check reports numbers out of range and fields that contradict each other.
func (a *Addresses) check(c ClientIP) error {
	var errs []error
	complain := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("ClientIP."+format, args...))
	}
	if c.Hops < 0 || c.Hops > maxHops {
		complain("Hops is %d, want 0 to %d", c.Hops, maxHops)
	}
	if a.bits < 1 || a.bits > 128 {
		complain("IPv6Bits is %d, want 1 to 128", c.IPv6Bits)
	}
	if a.single && c.Hops > 0 {
		complain("Hops cannot count entries in Header %s, which holds one address", a.header)
	}
	if a.single && len(c.Trusted) == 0 {
		complain("Header %s needs Trusted: which peers set it", a.header)
	}
	if c.Header != "" && a.direct && !a.single {
		complain("Header %s is never read: set Trusted or Hops", a.header)
	}
	return errors.Join(errs...)
}

// trust parses the list of proxies.
func (a *Addresses) trust(entries []string) error {
	var errs []error
	for i, entry := range entries {
		if entry == unixPeers {
			a.unix = true
			continue
		}
		p, err := parseTrusted(entry)
		if err != nil {
			errs = append(errs, fmt.Errorf("ClientIP.Trusted[%d]: %q is no CIDR prefix, address or %q", i, entry, unixPeers))
			continue
		}
		a.trusted = append(a.trusted, p)
	}
	return errors.Join(errs...)
}

// parseTrusted reads a prefix or a single address, v4-mapped ones as IPv4: the
// addresses they are compared with are folded the same way.
func parseTrusted(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Prefix{}, err
		}
		addr = fold(addr)
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is4In6() {
		return p, err
	}
	if p.Bits() < 96 {
		return netip.Prefix{}, errors.New("prefix of v4-mapped addresses wider than IPv4")
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96), nil
}

// fold gives one address one spelling: v4-mapped becomes IPv4, a zone is dropped.
func fold(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
