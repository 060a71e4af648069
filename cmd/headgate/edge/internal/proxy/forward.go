package proxy

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/headgate-go/headgate/admission/caller"
)

// forward tells the upstream who is asking: the address that the gate has found, and
// what a trusted proxy says of host and scheme. What a client says of itself is removed,
// in whichever field.
type forward struct {
	addresses *caller.Addresses
	field     string // canonical; the one that addresses are read from
}

const (
	forwardedField = "Forwarded"
	forField       = "X-Forwarded-For"
	hostField      = "X-Forwarded-Host"
	protoField     = "X-Forwarded-Proto"
)

func newForward(addresses *caller.Addresses, field string) forward {
	if field == "" {
		field = forField
	}
	return forward{addresses, http.CanonicalHeaderKey(field)}
}

// claims are the fields, besides X-Forwarded-*, by which frameworks and proxies are told
// of a client, or of another path than the one that was matched.
var claims = map[string]bool{
	forwardedField: true, "X-Real-Ip": true, "True-Client-Ip": true, "Cf-Connecting-Ip": true, "Cf-Connecting-Ipv6": true,
	"Fastly-Client-Ip": true, "X-Client-Ip": true, "X-Cluster-Client-Ip": true, "X-Azure-Clientip": true,
	"X-Envoy-External-Address": true, "X-Original-Forwarded-For": true, "X-Original-Host": true, "X-Host": true,
	"X-Scheme": true, "X-Original-Url": true, "X-Rewrite-Url": true, "X-Original-Uri": true, "Client-Ip": true,
	"X-Proxyuser-Ip": true, "Wl-Proxy-Client-Ip": true, "Proxy-Client-Ip": true, "Proxy": true,
}

// kept are what a trusted proxy alone can know, beside host and scheme.
var kept = map[string]bool{"X-Forwarded-Port": true, "X-Forwarded-Prefix": true}

// apply writes the fields of out, the header of the request to the upstream, for in.
func (f forward) apply(in *http.Request, out http.Header) {
	trusted := f.addresses.TrustsPeer(in)
	for name := range out {
		if claims[name] || strings.HasPrefix(name, "X-Forwarded-") && !(trusted && kept[name]) {
			delete(out, name)
		}
	}
	host, proto := in.Host, "http"
	if in.TLS != nil {
		proto = "https"
	}
	chain := []string{}
	if trusted {
		host, proto = f.words(in, host, proto)
		chain = f.chain(in)
	} else if at := peer(in); at.IsValid() {
		chain = append(chain, at.String())
	}
	f.write(out, chain, host, proto)
}

// write tells it in the fields that are in use; the one of a single address only where
// the edge is told by it as well.
func (f forward) write(out http.Header, chain []string, host, proto string) {
	if len(chain) > 0 {
		out[forField] = []string{strings.Join(chain, ", ")}
	}
	out[hostField], out[protoField] = []string{host}, []string{proto}
	out[forwardedField] = []string{elements(chain, host, proto)}
	if f.field != forField && f.field != forwardedField && len(chain) > 0 {
		out[f.field] = chain[:1:1]
	}
}

// chain are the client and the proxies that the request came through, as far as they are
// trusted.
func (f forward) chain(in *http.Request) (chain []string) {
	client, last := f.addresses.Addr(in), peer(in)
	if client.IsValid() {
		chain = append(chain, client.String())
	}
	if f.field == forField && client != last {
		chain = append(chain, between(in.Header[forField], client)...)
	}
	if last.IsValid() && client != last {
		chain = append(chain, last.String())
	}
	return chain
}

// between are the addresses to the right of the client's in a list: what the client has
// made up stands to the left of it.
func between(lines []string, client netip.Addr) (list []string) {
	entries := strings.Split(strings.Join(lines, ","), ",")
	for i := len(entries) - 1; i >= 0; i-- {
		at, ok := address(entries[i])
		if !ok || at == client {
			break
		}
		list = append([]string{at.String()}, list...)
	}
	return list
}

// address reads an address with or without a port.
func address(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if at, err := netip.ParseAddrPort(text); err == nil {
		return plainAddress(at.Addr()), true
	}
	at, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return plainAddress(at), err == nil
}

func peer(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return plainAddress(at.Addr())
}

func plainAddress(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// elements is the chain as RFC 7239 writes it.
func elements(chain []string, host, proto string) string {
	var b strings.Builder
	for i, at := range chain {
		if i > 0 {
			b.WriteString(", ")
		}
		if strings.Contains(at, ":") {
			b.WriteString(`for="[` + at + `]"`)
		} else {
			b.WriteString("for=" + at)
		}
		if i == 0 {
			b.WriteString(";" + said(host, proto))
		}
	}
	if len(chain) == 0 {
		return said(host, proto)
	}
	return b.String()
}

func said(host, proto string) string { return `host="` + quoted.Replace(host) + `";proto=` + proto }

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// words are the host and the scheme that a trusted proxy tells of, in the fields that it
// writes itself.
func (f forward) words(in *http.Request, host, proto string) (string, string) {
	saidHost, saidProto := last(in.Header[hostField]), last(in.Header[protoField])
	if f.field == forwardedField {
		saidHost, saidProto = parameters(last(in.Header[forwardedField]))
	}
	if isHost(saidHost) {
		host = saidHost
	}
	if saidProto = strings.ToLower(saidProto); saidProto == "https" || saidProto == "http" {
		proto = saidProto
	}
	return host, proto
}

// last returns the last entry of a list: what the nearest proxy wrote.
func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	inside, from := false, 0
	for i := range len(line) {
		switch line[i] {
		case '"':
			inside = !inside
		case ',':
			if !inside {
				from = i + 1
			}
		}
	}
	return strings.TrimSpace(line[from:])
}

// parameters returns host and proto of an element of Forwarded.
func parameters(element string) (host, proto string) {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "host":
			host = value
		case "proto":
			proto = value
		}
	}
	return host, proto
}

// isHost reports whether s may be a host, with or without a port.
func isHost(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && !strings.ContainsRune("-._:[]", rune(c)) {
			return false
		}
	}
	return true
}
