package accesslog

import (
	"bytes"
	"time"
)

// field is one field of a text line, without its quotes or brackets.
type field struct {
	text []byte
	mark byte // '"', '[' or 0 for a bare one
}

func (f *field) bare() bool { return f.mark == 0 }

// parseText tries the shapes of text lines in turn. Fields before the first that
// counts (a virtual host, what syslog or a container's runtime puts in front) are allowed.
func (p *Parser) parseText(line []byte) (r Request, err error) {
	p.split(line)
	if at := p.balancer(); at >= 0 {
		return p.parseALB(at)
	}
	for i := 0; i+1 < len(p.fields); i++ {
		f, next := &p.fields[i], &p.fields[i+1]
		switch {
		case f.mark == '"' && string(next.text) == "from" && next.bare():
			return p.parseChi(i)
		case f.mark == '[' && string(f.text) == "GIN":
			return p.parseGin(i)
		case f.mark == '[' && next.mark == '"' && isoLike(f.text):
			return p.parseEnvoy(i)
		case f.mark == '[' && next.mark == '"' && i > 0 && i+2 < len(p.fields):
			return p.parseCommon(i)
		case f.mark == '[' && next.bare() && i+5 < len(p.fields) && isTimers(p.fields[i+3].text):
			return p.parseHAProxy(i)
		}
	}
	return r, ErrFormat
}

// isoLike reports whether a text begins as 2026-03-02T does.
func isoLike(s []byte) bool { return len(s) >= 19 && s[4] == '-' && s[7] == '-' && s[10] == 'T' }

// answered reads the status and the line of the request.
func (r *Request) answered(code, line *field) error {
	var ok bool
	if r.Status, ok = status(string(code.text)); !ok {
		return ErrFormat
	}
	if r.Route, ok = routeOfRequestLine(string(line.text), r.Status); !ok {
		return ErrRequest
	}
	return nil
}

// iso reads a stamp that carries parts of a second.
func iso(r *Request, s []byte) bool {
	at, err := time.Parse(time.RFC3339Nano, string(s))
	r.Stamp = at
	return err == nil && plausible(at)
}

// split cuts a line at its spaces, except inside quotes and brackets.
func (p *Parser) split(line []byte) {
	p.fields = p.fields[:0]
	for len(line) > 0 {
		f, rest := cutField(line)
		if f.mark != 0 || len(f.text) > 0 {
			p.fields = append(p.fields, f)
		}
		line = rest
	}
}

func cutField(line []byte) (f field, rest []byte) {
	end, skip := bytes.IndexByte(line, ' '), 1
	switch line[0] {
	case '"':
		line, f.mark, skip = line[1:], '"', 1
		end = closingQuote(line)
	case '[':
		line, f.mark, skip = line[1:], '[', 1
		end = bytes.IndexByte(line, ']')
	}
	if end < 0 {
		return field{text: line, mark: f.mark}, nil
	}
	f.text = line[:end]
	return f, line[end+skip:]
}

// closingQuote returns the index of the first quote that no backslash escapes.
func closingQuote(s []byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// absent turns the log's sign for nothing into nothing.
func absent(s string) string {
	if s == "-" {
		return ""
	}
	return s
}
