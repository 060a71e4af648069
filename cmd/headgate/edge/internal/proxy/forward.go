package proxy

import (
	"net/http"
	"net/netip"
	"strings"
)

// forward tells the upstream who is asking: the address that the gate has found, and
// what a trusted proxy says of host and scheme. What a client says of itself is removed,
// in whichever field.
type forward struct {
	InForce
	underscores bool // fields with an underscore in their names pass
}

const (
	forwardedField = "Forwarded"
	forField       = "X-Forwarded-For"
	hostField      = "X-Forwarded-Host"
	protoField     = "X-Forwarded-Proto"
)

// claims are the fields, besides X-Forwarded-*, by which frameworks and proxies are told
// of a client, or of another path than the one that was matched.
var claims = map[string]bool{
	forwardedField: true, "X-Real-Ip": true, "True-Client-Ip": true, "Cf-Connecting-Ip": true, "Cf-Connecting-Ipv6": true,
	"Fastly-Client-Ip": true, "X-Client-Ip": true, "X-Cluster-Client-Ip": true, "X-Azure-Clientip": true,
	"X-Envoy-External-Address": true, "X-Original-Forwarded-For": true, "X-Original-Host": true, "X-Host": true,
	"X-Scheme": true, "X-Original-Url": true, "X-Rewrite-Url": true, "X-Original-Uri": true, "Client-Ip": true,
	"X-Proxyuser-Ip": true, "Wl-Proxy-Client-Ip": true, "Proxy-Client-Ip": true, "Proxy": true,
	"Forwarded-For": true, "X-Forward-For": true, "X-Forwarded": true, "X-Originating-Ip": true, "X-Remote-Ip": true,
	"X-Remote-Addr": true, "X-Http-Host-Override": true,
}

// overrides are the fields by which frameworks are told of another method than the one
// that was matched.
var overrides = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// claim reports whether name is one of claims. Most fields begin with another letter.
func claim(name string) bool {
	return name != "" && strings.IndexByte("CFPTWX", name[0]) >= 0 && claims[name]
}

// kept are what a trusted proxy alone can know, beside host and scheme.
var kept = map[string]bool{"X-Forwarded-Port": true, "X-Forwarded-Prefix": true}

// apply writes the fields of out, the header of the request to the upstream, for in.
func (f forward) apply(in *http.Request, out http.Header) {
	trusted := f.Addresses.TrustsPeer(in)
	f.overrule(out)
	for name := range out {
		// A server behind a gateway interface reads X_Forwarded_For as X-Forwarded-For.
		if !f.underscores && strings.IndexByte(name, '_') >= 0 || claim(name) || strings.HasPrefix(name, "X-Forwarded-") && !(trusted && kept[name]) {
			delete(out, name)
		}
	}
	host, proto := in.Host, "http"
	if in.TLS != nil {
		proto = "https"
	}
	if trusted {
		host, proto = f.words(in, host, proto)
		f.write(out, f.chain(in), host, proto)
	} else if at := peer(in); at.IsValid() {
		f.write(out, []string{at.String()}, host, proto)
	} else {
		f.write(out, nil, host, proto)
	}
}

// overrule removes what would make another request of it where that matters.
func (f forward) overrule(out http.Header) {
	if !f.Methods {
		return
	}
	for _, name := range overrides {
		delete(out, name)
	}
}

// disclaim removes the body and the credentials that come with a preflight. Browsers send
// none, and the gate asks for none there: a server that makes no difference between methods
// would serve a caller who pays nothing.
func (f forward) disclaim(out *http.Request) {
	if out.Method != http.MethodOptions || out.Header["Origin"] == nil || out.Header["Access-Control-Request-Method"] == nil {
		return
	}
	for _, name := range f.Credentials {
		delete(out.Header, name)
	}
	if f.Credentials != nil {
		out.Body, out.ContentLength, out.TransferEncoding = http.NoBody, 0, nil
	}
}

// write tells it in the fields that are in use; the one of a single address only where
// the edge is told by it as well.
func (f forward) write(out http.Header, chain []string, host, proto string) {
	values := [...]string{host, proto, elements(chain, host, proto), strings.Join(chain, ", ")} // one object
	out[hostField], out[protoField], out[forwardedField] = values[0:1:1], values[1:2:2], values[2:3:3]
	if len(chain) == 0 {
		return
	}
	out[forField] = values[3:4:4]
	if f.AddressField != forField && f.AddressField != forwardedField {
		out[f.AddressField] = []string{chain[0]}
	}
}

// chain are the client and the proxies that the request came through, as far as they are
// trusted.
func (f forward) chain(in *http.Request) (chain []string) {
	client, last := f.Addresses.Addr(in), peer(in)
	if client.IsValid() {
		chain = append(chain, client.String())
	}
	if f.AddressField == forField && client != last {
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
	host = quoted.Replace(host)
	if len(chain) == 0 {
		return `host="` + host + `";proto=` + proto
	}
	before, after := node(chain[0])
	all := "for=" + before + chain[0] + after + `;host="` + host + `";proto=` + proto
	for _, at := range chain[1:] {
		before, after = node(at)
		all += ", for=" + before + at + after
	}
	return all
}

// node returns what stands around an address: those with colons are quoted.
func node(at string) (before, after string) {
	if strings.Contains(at, ":") {
		return `"[`, `]"`
	}
	return "", ""
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// words are the host and the scheme that a trusted proxy tells of, in the fields that it
// writes itself.
func (f forward) words(in *http.Request, host, proto string) (string, string) {
	saidHost, saidProto := last(in.Header[hostField]), last(in.Header[protoField])
	if f.AddressField == forwardedField {
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
