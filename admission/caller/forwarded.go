package caller

import "strings"

// entries walks the entries of a list header from the last one to the first, over
// all its lines, without allocating. Whatever a client sent stands to the left of
// what the proxies added, so it cannot disturb the reading of what is trusted,
// however malformed it is.
type entries struct {
	lines  []string
	rest   string // of the current line
	inLine bool   // rest is still to be read, if only as an empty entry
	quoted bool   // commas inside double quotes do not separate
	empty  bool   // empty entries count as well; without it they are skipped
}

// next returns the next entry to the left.
func (e *entries) next() (string, bool) {
	for {
		if !e.inLine {
			if len(e.lines) == 0 {
				return "", false
			}
			e.rest = e.lines[len(e.lines)-1]
			e.lines = e.lines[:len(e.lines)-1]
		}
		i := e.lastComma()
		entry := strings.TrimSpace(e.rest[i+1:])
		e.rest, e.inLine = e.rest[:max(i, 0)], i >= 0
		if entry != "" || e.empty {
			return entry, true
		}
	}
}

// lastComma returns the index of the last separator of the current line, or -1.
func (e *entries) lastComma() int {
	if !e.quoted {
		return strings.LastIndexByte(e.rest, ',')
	}
	inside := false
	for i := len(e.rest) - 1; i >= 0; i-- {
		switch {
		case e.rest[i] == '"' && !escaped(e.rest, i):
			inside = !inside
		case e.rest[i] == ',' && !inside:
			return i
		}
	}
	return -1
}

// escaped reports whether an odd number of backslashes stands before s[i].
func escaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// forwardedNode returns the node of an element of a Forwarded header (RFC 7239
// §4): the value of its one "for" parameter, without quotes.
func forwardedNode(element string) (node string, ok bool) {
	for element != "" {
		var pair string
		pair, element = cutPair(element)
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "for") {
			continue
		}
		if ok {
			return "", false // which of the two?
		}
		if node, ok = unquote(strings.TrimSpace(value)); !ok {
			return "", false
		}
	}
	return node, ok
}

// cutPair cuts an element at its first semicolon outside quotes.
func cutPair(element string) (pair, rest string) {
	inside := false
	for i := range len(element) {
		switch {
		case element[i] == '"' && !escaped(element, i):
			inside = !inside
		case element[i] == ';' && !inside:
			return element[:i], element[i+1:]
		}
	}
	return element, ""
}

// unquote removes the quotes of a node. A node has nothing to escape, so a
// backslash or a quote inside makes it none.
func unquote(s string) (string, bool) {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		s = s[1 : len(s)-1]
	}
	return s, s != "" && !strings.ContainsAny(s, `"\`)
}
