package edge

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// knownHosts answers only requests that name a host the operator knows: an address,
// localhost, or one of those listed. A page in a browser can have a name of its own lead
// to 127.0.0.1 and would then read, and write, what is meant for the machine alone; it
// cannot make the browser send another name than its own.
func knownHosts(next http.Handler, listed []string) http.Handler {
	known := map[string]bool{"localhost": true}
	for _, host := range listed {
		known[hostOf(host)] = true
	}
	delete(known, "")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if _, err := netip.ParseAddr(host); err != nil && !known[host] {
			http.Error(w, "unknown host: list it in admin_hosts", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host of host:port, in lower case, without brackets and final dot.
func hostOf(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
