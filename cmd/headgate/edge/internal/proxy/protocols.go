package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
)

// protocols are the ones that a connection may be switched to, in lower case. What
// runs inside a switched connection meets no limit, so every protocol has to be listed:
// with h2c, one admitted request would open the way for any number of others.
type protocols []string

func newProtocols(names []string) (all protocols) {
	for _, name := range names {
		all = append(all, strings.ToLower(name))
	}
	return all
}

// limit is the handler that removes every request to switch to a protocol that is not
// listed, and refuses the two methods that ask for one: CONNECT, and PRI, with which a
// connection of HTTP/2 begins where the server does not speak it. It refuses as well what
// asks for no path.
func (p protocols) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect || r.Method == "PRI" {
			refuse(w, http.StatusMethodNotAllowed)
			return
		}
		if !asksForAPath(r) {
			refuse(w, http.StatusBadRequest)
			return
		}
		if r.Header["Upgrade"] != nil || r.Header["Http2-Settings"] != nil {
			r = p.filtered(r)
		}
		next.ServeHTTP(w, r)
	})
}

// asksForAPath reports whether the target of r is a path that every server reads as the
// rules have read it. "x:http://h/export" has none, so that no rule holds for it, and would
// be passed on as http://h/export; a control character ends the path for some servers.
func asksForAPath(r *http.Request) bool {
	p := r.URL.Path
	if r.URL.Opaque != "" || p != "" && p[0] != '/' {
		return p == "*" && r.Method == http.MethodOptions
	}
	return strings.IndexFunc(p, unicode.IsControl) < 0
}

// filtered is r with at most one listed protocol to switch to. The settings of h2c go
// in any case: with an upgrade of theirs removed, they are a way to have it back for
// a server that looks at nothing else.
func (p protocols) filtered(r *http.Request) *http.Request {
	out := r.WithContext(r.Context())
	out.Header = r.Header.Clone()
	delete(out.Header, "Http2-Settings")
	delete(out.Header, "Upgrade")
	if name := p.asked(r.Header); name != "" {
		out.Header["Upgrade"] = []string{name}
	}
	return out
}

// asked returns the first listed protocol that h asks for, or "".
func (p protocols) asked(h http.Header) string {
	for _, line := range h["Upgrade"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); slices.Contains(p, name) {
				return name
			}
		}
	}
	return ""
}

// unasked reports a 101 that answers no request for it. The proxy would take the
// connection over for one without a name, and pass on a list of protocols of which
// only the first was asked for.
func unasked(resp *http.Response) error {
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil
	}
	asked, got := resp.Request.Header["Upgrade"], resp.Header["Upgrade"]
	if len(asked) != 1 || len(got) != 1 || !strings.EqualFold(asked[0], got[0]) {
		return &nonsense{fmt.Sprintf("a switch to %.100q where %.100q was asked for", got, asked)}
	}
	return nil
}
