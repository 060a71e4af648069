// Package spelling knows in which ways a router may read a request: one path, host or
// method has many spellings, and routers differ in which of them they take for the
// same. It knows no gate and no rule.
package spelling

import (
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
)

// Plain reports whether r is spelled in the one canonical way: the path clean, without
// parameters and with nothing escaped that need not be, the method in capitals and, if
// hosts matter, the host in lower case without a final dot. A final slash is plain; what
// r reads like without it, [Each] tells.
func Plain(r *http.Request, hosts bool) bool {
	p := r.URL.Path
	return r.URL.RawPath == "" && p == Clean(p) && !strings.ContainsAny(p, ";"+odd) &&
		r.Method == strings.ToUpper(r.Method) && (!hosts || name(r.Host) == canonicalHost(r.Host))
}

// Slashed reports whether r's path ends in a slash that a router may drop.
func Slashed(r *http.Request) bool {
	p := r.URL.Path
	return len(p) > 1 && p[len(p)-1] == '/'
}

// Each calls f with every reading of r: its path as sent and unescaped once, with and
// without parameters (";x=1") and a final slash, slashes merged and dot segments
// removed, and what routers make of a path that is odd (see appendOdd); its host, if hosts matter, and its method as sent and in their canonical
// spelling. The most canonical reading comes first. The request that f gets is good for
// that call only, and has nothing but what a pattern can ask for. Each takes no more
// than a few dozen readings, and mostly one or two.
func Each(r *http.Request, hosts bool, f func(*http.Request)) {
	s := pool.Get().(*scratch)
	defer pool.Put(s)
	s.hosts = appendNew(s.hosts[:0], canonicalHost(r.Host), hosts)
	s.hosts = appendNew(s.hosts, r.Host, true)
	s.methods = appendNew(s.methods[:0], strings.ToUpper(r.Method), true)
	s.methods = appendNew(s.methods, r.Method, true)
	s.paths = appendPaths(s.paths[:0], r.URL.Path, false)
	if strings.ContainsAny(r.URL.Path, odd) || strings.HasPrefix(r.URL.Path, "//") {
		s.paths = appendOdd(s.paths, r.URL.Path)
	}
	if r.URL.RawPath != "" {
		s.paths = appendPaths(s.paths, r.URL.RawPath, true)
	}
	for _, p := range s.paths {
		s.url = url.URL{Host: r.URL.Host, Path: p.decoded, RawPath: p.escaped}
		for _, host := range s.hosts {
			for _, method := range s.methods {
				s.request.Method, s.request.Host, s.request.URL = method, host, &s.url
				f(&s.request)
			}
		}
	}
}

// Clean is path.Clean of a rooted path, a final slash kept.
func Clean(p string) string {
	if p == "" || p[0] != '/' {
		p = "/" + p
	}
	clean := path.Clean(p)
	if p[len(p)-1] != '/' || clean == "/" {
		return clean
	}
	if len(p) == len(clean)+1 && strings.HasPrefix(p, clean) {
		return p // nothing to allocate
	}
	return clean + "/"
}

// scratch is what one look at a request needs; it is used again for the next.
type scratch struct {
	request        http.Request
	url            url.URL
	paths          []spelled
	hosts, methods []string
}

var pool = sync.Pool{New: func() any { return new(scratch) }}

// spelled is a path, and how it was escaped where that matters.
type spelled struct{ decoded, escaped string }

// appendPaths appends the readings of one path, the most canonical first.
func appendPaths(to []spelled, p string, escaped bool) []spelled {
	for _, p := range [...]string{withoutParameters(p), p} {
		clean := Clean(p)
		if len(clean) > 1 {
			to = appendPath(to, strings.TrimSuffix(clean, "/"), escaped)
		}
		to = appendPath(to, clean, escaped)
	}
	return to
}

// odd are the characters of a path, unescaped once, that some routers give a meaning.
const odd = "\\%?#\x00"

// mostOdd bounds how many ways an odd path is read in.
const mostOdd = 8

// appendOdd appends the readings of a path that is odd: unescaped once more; with
// backslashes for slashes; as a URL without its scheme, of which what follows two slashes
// is the host (browsers' URLs take more for two); and up to what begins a query or a fragment, or ends a text in C.
func appendOdd(to []spelled, p string) []spelled {
	all := []string{p}
	for i := 0; i < len(all) && len(all) < mostOdd; i++ {
		p := all[i]
		if again, err := url.PathUnescape(p); err == nil {
			all = appendNewPath(all, again)
		}
		all = appendNewPath(all, strings.ReplaceAll(p, "\\", "/"))
		if strings.HasPrefix(p, "//") {
			_, rest, _ := strings.Cut(strings.TrimLeft(p, "/"), "/")
			all = appendNewPath(all, "/"+rest)
		}
		if end := strings.IndexAny(p, "?#\x00"); end >= 0 {
			all = appendNewPath(all, p[:end])
		}
	}
	for _, p := range all[1:] {
		to = appendPaths(to, p, false)
	}
	return to
}

func appendNewPath(to []string, p string) []string {
	if slices.Contains(to, p) {
		return to
	}
	return append(to, p)
}

func appendPath(to []spelled, p string, escaped bool) []spelled {
	s := spelled{decoded: p}
	if escaped {
		decoded, err := url.PathUnescape(p)
		if err != nil {
			return to
		}
		s = spelled{decoded, p}
	}
	for _, known := range to {
		if known == s {
			return to
		}
	}
	return append(to, s)
}

// withoutParameters drops what follows a semicolon in each segment.
func withoutParameters(p string) string {
	if !strings.Contains(p, ";") {
		return p
	}
	var b strings.Builder
	for i, segment := range strings.Split(p, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		bare, _, _ := strings.Cut(segment, ";")
		b.WriteString(bare)
	}
	return b.String()
}

// canonicalHost is host in lower case, without its port and a final dot.
func canonicalHost(host string) string {
	return strings.ToLower(strings.TrimRight(name(host), "."))
}

// name is host without its port, as patterns are matched.
func name(host string) string {
	if !strings.Contains(host, ":") {
		return host
	}
	if bare, _, err := net.SplitHostPort(host); err == nil {
		return bare
	}
	return host
}

func appendNew(to []string, s string, wanted bool) []string {
	if !wanted || len(to) > 0 && to[0] == s {
		return to
	}
	return append(to, s)
}
