package accesslog

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// field is one field of a text line, without its quotes or brackets.
type field struct {
	text []byte
	mark byte // '"', '[' or 0 for a bare one
}

// parseText reads a common or combined line:
//
//	host ident user [time] "request" status bytes "referer" "agent" more ...
//
// Fields before the host (a virtual host, say) and after the agent are allowed.
func (p *Parser) parseText(line []byte) (r Request, err error) {
	p.split(line)
	at := 0
	for at < len(p.fields) && p.fields[at].mark != '[' {
		at++
	}
	if at == 0 || at+2 >= len(p.fields) || p.fields[at+1].mark != '"' {
		return r, ErrFormat
	}
	var ok bool
	if r.Stamp, ok = p.clock.clf(p.fields[at].text); !ok {
		return r, ErrTime
	}
	r.Coarse = true
	if r.Status, ok = status(string(p.fields[at+2].text)); !ok {
		return r, ErrFormat
	}
	if r.Route, ok = routeOfRequestLine(string(p.fields[at+1].text), r.Status); !ok {
		return r, ErrRequest
	}
	r.Caller = absent(string(p.fields[max(at-3, 0)].text))
	found := p.textLatency(at+3, &r)
	r.AtEnd = p.Stamp == End || p.Stamp == Guess && !(found && r.Latency == apacheLatency)
	return r, nil
}

const (
	apacheLatency = "an integer field, read as µs"
	nginxLatency  = "a decimal field, read as s"
)

// textLatency finds how long the request took among the fields from the given one
// on: the field the options name, one that names itself, or the first bare number
// after the size.
func (p *Parser) textLatency(from int, r *Request) bool {
	if n, err := strconv.Atoi(p.Latency); err == nil {
		return n >= 1 && n <= len(p.fields) && p.setLatency(r, string(p.fields[n-1].text))
	}
	for _, f := range p.fields[min(from, len(p.fields)):] {
		if name, value, ok := bytes.Cut(f.text, []byte("=")); ok && selfNamed(string(name)) {
			return p.setLatency(r, string(value))
		}
	}
	for _, f := range p.fields[min(from+1, len(p.fields)):] {
		if f.mark == 0 && p.setLatency(r, string(f.text)) {
			return true
		}
	}
	return false
}

func selfNamed(name string) bool {
	switch name {
	case "rt", "request_time", "duration", "latency", "time_taken":
		return true
	}
	return false
}

// setLatency reads a bare number: nginx writes seconds with a fraction, Apache's
// %D whole microseconds.
func (p *Parser) setLatency(r *Request, s string) bool {
	unit, how := time.Microsecond, apacheLatency
	if strings.ContainsRune(s, '.') {
		unit, how = time.Second, nginxLatency
	}
	if p.Unit > 0 {
		unit, how = p.Unit, "a number of "+p.Unit.String()[1:]
	}
	took, ok := times(s, unit)
	if !ok {
		if took, ok = duration(s); !ok {
			return false
		}
		how = "a duration"
	}
	r.Took, r.Timed, r.Latency = took, true, how
	return true
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
