package accesslog

import (
	"bytes"
	"strings"
)

// parseChi reads what chi's middleware.Logger writes by log.Print, whose request
// is the field at:
//
//	2026/03/02 10:00:05 "GET http://host/path HTTP/1.1" from 192.0.2.7:5123 - 200 12B in 1.2ms
func (p *Parser) parseChi(at int) (r Request, err error) {
	f := p.fields[at:]
	if at < 2 || len(f) < 8 || string(f[6].text) != "in" {
		return r, ErrFormat
	}
	r.Format = "chi"
	from := at - 2
	if p.fields[at-1].mark == '[' && at > 2 { // the request's id
		from--
	}
	var ok bool
	if r.Stamp, r.Coarse, ok = stampOf(string(p.fields[from].text) + " " + string(p.fields[from+1].text)); !ok {
		return r, ErrTime
	}
	if err = r.answered(&f[4], &f[0]); err != nil {
		return r, err
	}
	r.Caller = address(string(f[2].text))
	p.read(&r, "the duration", f[7].text, 0)
	p.stamped(&r, true)
	return r, nil
}

// parseGin reads gin's logger:
//
//	[GIN] 2026/03/02 - 10:00:05 | 200 |    12.3µs |    192.0.2.7 | GET      "/path"
func (p *Parser) parseGin(at int) (r Request, err error) {
	f := p.fields[at:]
	if len(f) < 13 || string(f[4].text) != "|" || f[12].mark != '"' {
		return r, ErrFormat
	}
	r.Format = "gin"
	var ok bool
	if r.Stamp, r.Coarse, ok = stampOf(string(f[1].text) + " " + string(f[3].text)); !ok {
		return r, ErrTime
	}
	if r.Status, ok = status(string(f[5].text)); !ok {
		return r, ErrFormat
	}
	if r.Route, ok = route(string(f[11].text), string(f[12].text), r.Status); !ok {
		return r, ErrRequest
	}
	r.Caller = string(f[9].text)
	p.read(&r, "the duration", f[7].text, 0)
	p.stamped(&r, true)
	return r, nil
}

// parsePairs reads key=value pairs, as slog's text handler and other loggers write
// them.
func (p *Parser) parsePairs(line []byte) (r Request, err error) {
	var f found
	pairs := 0
	for len(line) > 0 {
		key, value, rest := cutPair(line)
		line = rest
		if len(key) == 0 {
			continue
		}
		pairs++
		if known := p.whatIs(key); known.what != nothing {
			f.offer(known, value)
		}
	}
	if pairs < 3 || f.value[stampKey] == nil {
		return r, ErrFormat
	}
	f.pairs = true
	return p.fromFound(&f)
}

// cutPair takes key=value off the line, where a quoted value may hold spaces. The key
// is empty where no pair stands.
func cutPair(line []byte) (key, value, rest []byte) {
	i := bytes.IndexAny(line, "= ")
	if i < 0 {
		return nil, nil, nil
	}
	if line[i] == ' ' {
		return nil, nil, line[i+1:]
	}
	key, line = line[:i], line[i+1:]
	end := bytes.IndexByte(line, ' ')
	if len(line) > 0 && line[0] == '"' {
		if end = closingQuote(line[1:]); end >= 0 {
			end += 2
		}
	}
	if end < 0 {
		end = len(line)
	}
	return key, line[:end], bytes.TrimLeft(line[end:], " ")
}

// upper reports whether a level is written as slog does: INFO, WARN+2.
func upper(level string) bool {
	return level != "" && strings.ToUpper(level) == level && level[0] >= 'A'
}
