package accesslog

import (
	"bytes"
	"strconv"
	"time"
)

// parseCommon reads a common or combined line, whose time is the field at:
//
//	host ident user [time] "request" status bytes "referer" "agent" more ...
func (p *Parser) parseCommon(at int) (r Request, err error) {
	var ok bool
	if r.Stamp, ok = p.clock.clf(p.fields[at].text); !ok {
		return r, ErrTime
	}
	r.Coarse = true
	if err = r.answered(&p.fields[at+2], &p.fields[at+1]); err != nil {
		return r, err
	}
	r.Caller = absent(string(p.fields[max(at-3, 0)].text))
	tail := p.fields[min(at+4, len(p.fields)):]
	r.Format = "common"
	if len(tail) >= 2 && tail[0].mark == '"' && tail[1].mark == '"' {
		r.Format, tail = "combined", tail[2:]
	}
	if at == 4 && bytes.ContainsRune(p.fields[0].text, ':') {
		r.Format = "vhost_" + r.Format
	}
	p.stamped(&r, p.commonLatency(tail, &r))
	return r, nil
}

// commonLatency finds how long the request took among the fields after the agent,
// and reports whether the stamp is the request's end.
func (p *Parser) commonLatency(tail []field, r *Request) (atEnd bool) {
	value, ok := p.chosen(r)
	switch {
	case ok: // a whole number is Apache's, which stamps the start
		return bytes.ContainsRune(value, '.')
	case p.named(tail, r):
		return true
	case isIngress(tail):
		r.Format = "ingress-nginx"
		p.read(r, "request_time", tail[1].text, time.Second)
		return true
	case isTraefik(tail):
		r.Format = "Traefik"
		p.read(r, "the duration", tail[3].text, 0)
		return false
	case readNginx(p, tail, r):
		return true
	}
	p.apacheLatency(tail, r)
	return false
}

// isIngress: request_length request_time [proxy_upstream_name] ...
func isIngress(tail []field) bool {
	return len(tail) >= 3 && tail[0].bare() && isWhole(tail[0].text) && tail[1].bare() && isMillis(tail[1].text) && tail[2].mark == '['
}

// isTraefik: count "router" "server" 12ms
func isTraefik(tail []field) bool {
	return len(tail) == 4 && isWhole(tail[0].text) && tail[1].mark == '"' && tail[2].mark == '"' && bytes.HasSuffix(tail[3].text, []byte("ms"))
}

// readNginx takes the first number with three decimals, which is how nginx
// writes $request_time; quoted only where none is bare.
func readNginx(p *Parser, tail []field, r *Request) bool {
	for _, mark := range []byte{0, '"'} {
		for i := range tail {
			if tail[i].mark == mark && isMillis(tail[i].text) {
				r.Format = "nginx, " + r.Format + " with $request_time"
				p.read(r, "request_time", tail[i].text, time.Second)
				return true
			}
		}
	}
	return false
}

// apacheLatency takes %T/%D, or the first bare field that is a number: of which unit
// (%D µs, %T s) the line does not say.
func (p *Parser) apacheLatency(tail []field, r *Request) {
	for i := range tail {
		f := &tail[i]
		if !f.bare() {
			continue
		}
		text := bytes.Trim(f.text, "*")
		if s, us, ok := bytes.Cut(text, []byte("/")); ok && isWhole(s) && isWhole(us) {
			r.Format = "Apache, " + r.Format + " with %T/%D"
			p.read(r, "%D", us, time.Microsecond)
			return
		}
		if p.read(r, strconv.Itoa(p.number(f)), text, 0) {
			return
		}
	}
}

// number returns a field's number in the line, from 1.
func (p *Parser) number(f *field) int {
	for i := range p.fields {
		if &p.fields[i] == f {
			return i + 1
		}
	}
	return 0
}

// chosen reads the field that the options number.
func (p *Parser) chosen(r *Request) (value []byte, ok bool) {
	for _, l := range p.Latency {
		if n, err := strconv.Atoi(l.Name); err == nil && n >= 1 && n <= len(p.fields) {
			value = bytes.Trim(p.fields[n-1].text, "*")
			return value, p.readIn(r, l.Name, value, l.Unit, 0)
		}
	}
	return nil, false
}

// named reads a field that names itself: rt=0.123.
func (p *Parser) named(tail []field, r *Request) bool {
	for i := range tail {
		name, value, ok := bytes.Cut(tail[i].text, []byte("="))
		if !ok {
			continue
		}
		chosen, unit := p.chosenKey(string(name))
		if !chosen && !selfNamed(string(name)) {
			continue
		}
		natural := time.Duration(0)
		if isMillis(value) {
			natural = time.Second
		}
		if p.readIn(r, string(name), value, unit, natural) {
			return true
		}
	}
	return false
}

// chosenKey reports whether the options name this key, and the unit they give it.
func (p *Parser) chosenKey(name string) (bool, time.Duration) {
	for _, l := range p.Latency {
		if l.Name == name {
			return true, l.Unit
		}
	}
	return false, 0
}

func selfNamed(name string) bool {
	switch name {
	case "rt", "request_time", "duration", "latency", "time_taken":
		return true
	}
	return false
}
