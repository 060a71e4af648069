package accesslog

import "strings"

// NotFound is the route of everything answered 404: what no route knows has no
// place in a table of routes, and scanners send a lot of it.
const NotFound = "(not found)"

const (
	mostSegments = 6
	mostRoute    = 80 // bytes
)

// routeOfRequestLine reads "GET /path?query HTTP/1.1".
func routeOfRequestLine(line string, status int) (string, bool) {
	method, rest, ok := strings.Cut(line, " ")
	if !ok || !isMethod(method) {
		return "", false
	}
	target, _, _ := strings.Cut(rest, " ")
	return route(method, target, status)
}

func routeOfJSON(f *found, status int) (string, bool) {
	if path := text(f.value[pathKey]); path != "" {
		method := text(f.value[methodKey])
		if method == "" {
			method = "GET"
		}
		return route(method, path, status)
	}
	return routeOfRequestLine(text(f.value[requestKey]), status)
}

func isMethod(s string) bool {
	for i := range len(s) {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return len(s) >= 3 && len(s) <= 10
}

func route(method, target string, status int) (string, bool) {
	if !isMethod(method) {
		return "", false
	}
	if status == 404 {
		return NotFound, true
	}
	path := pathOf(target)
	if path == "" {
		return "", false
	}
	var b strings.Builder
	b.WriteString(method + " ")
	for i, segment := range strings.Split(strings.Trim(path, "/"), "/") {
		if i == mostSegments || b.Len()+len(segment) > mostRoute {
			b.WriteString("/...")
			break
		}
		b.WriteByte('/')
		segment = fold(segment)
		b.WriteString(segment)
	}
	return b.String(), true
}

// pathOf returns the path of a request target: what stands between the host, if
// any, and the query.
func pathOf(target string) string {
	if i := strings.IndexAny(target, "?#"); i >= 0 {
		target = target[:i]
	}
	if _, rest, ok := strings.Cut(target, "://"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
		return "/"
	}
	if target == "*" || strings.HasPrefix(target, "/") {
		return target
	}
	return ""
}
