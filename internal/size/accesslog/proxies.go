package accesslog

import (
	"bytes"
	"time"
)

// parseEnvoy reads Envoy's default line, and Istio's, which has three fields more
// before the sizes:
//
//	[start] "request" status flags received sent duration upstream-time "x-forwarded-for" ...
//	[start] "request" status flags details termination "failure" received sent duration ...
func (p *Parser) parseEnvoy(at int) (r Request, err error) {
	f := p.fields[at:]
	if len(f) < 8 {
		return r, ErrFormat
	}
	if !iso(&r, f[0].text) {
		return r, ErrTime
	}
	if err = r.answered(&f[2], &f[1]); err != nil {
		return r, err
	}
	r.Format, f = "Envoy", f[4:]
	if !isWhole(f[0].text) {
		r.Format, f = "Istio (Envoy)", f[min(3, len(f)):]
	}
	if len(f) >= 3 {
		p.proxyLatency(&r, "the duration", f[2].text)
	}
	if len(f) >= 5 {
		r.Caller = address(absent(string(f[4].text)))
	}
	if r.Caller == "" && len(f) >= 13 { // downstream remote address
		r.Caller = address(absent(string(f[12].text)))
	}
	p.stamped(&r, false)
	return r, nil
}

// proxyLatency reads milliseconds, unless the options number another field.
func (p *Parser) proxyLatency(r *Request, name string, text []byte) {
	if _, ok := p.chosen(r); !ok {
		p.read(r, name, text, time.Millisecond)
	}
}

// haproxyTime has no zone: it is taken for UTC.
const haproxyTime = "02/Jan/2006:15:04:05.999999999"

// isTimers: TR/Tw/Tc/Tr/Ta of HAProxy's HTTP log, -1 where it was not reached.
func isTimers(s []byte) bool {
	parts := 0
	for part := range bytes.SplitSeq(s, []byte("/")) {
		parts++
		if part = bytes.TrimLeft(part, "+-"); !isWhole(part) {
			return false
		}
	}
	return parts == 5
}

// parseHAProxy reads the HTTP log:
//
//	client:port [accepted] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes ... "request"
func (p *Parser) parseHAProxy(at int) (r Request, err error) {
	r.Format = "HAProxy"
	if at == 0 {
		return r, ErrFormat
	}
	if r.Stamp, err = time.Parse(haproxyTime, string(p.fields[at].text)); err != nil || !plausible(r.Stamp) {
		return r, ErrTime
	}
	r.Coarse = bytes.IndexByte(p.fields[at].text, '.') < 0
	var ok bool
	if r.Status, ok = status(string(p.fields[at+4].text)); !ok {
		return r, ErrFormat
	}
	for i := len(p.fields) - 1; i > at+5 && r.Route == ""; i-- {
		if p.fields[i].mark == '"' {
			r.Route, _ = routeOfRequestLine(string(p.fields[i].text), r.Status)
		}
	}
	if r.Route == "" {
		return r, ErrRequest
	}
	r.Caller = address(string(p.fields[at-1].text))
	timers := p.fields[at+3].text
	p.proxyLatency(&r, "Ta", bytes.TrimPrefix(timers[bytes.LastIndexByte(timers, '/')+1:], []byte("+")))
	p.stamped(&r, false)
	return r, nil
}

// balancer returns where the line of a load balancer of AWS begins, or -1:
//
//	type time elb client:port target:port 0.001 0.002 0.003 status ...
func (p *Parser) balancer() int {
	if len(p.fields) < 13 || !isoLike(p.fields[1].text) || p.fields[12].mark != '"' {
		return -1
	}
	switch string(p.fields[0].text) {
	case "http", "https", "h2", "grpcs", "ws", "wss":
		return 0
	}
	return -1
}

// parseALB adds up the three times that the balancer writes; where it could not
// dispatch the request they are -1, and the time is not known.
func (p *Parser) parseALB(at int) (r Request, err error) {
	f := p.fields[at:]
	r.Format = "AWS ALB"
	if !iso(&r, f[1].text) {
		return r, ErrTime
	}
	if err = r.answered(&f[8], &f[12]); err != nil {
		return r, err
	}
	r.Caller = address(string(f[3].text))
	p.stamped(&r, true)
	if _, ok := p.chosen(&r); ok {
		return r, nil
	}
	var sum time.Duration
	for i := 5; i < 8; i++ {
		if string(f[i].text) == "-1" {
			r.Reading, r.Took, r.Timed = Reading{Format: r.Format}, 0, false
			return r, nil
		}
		p.read(&r, "the three processing times", f[i].text, time.Second)
		sum += r.Took
	}
	r.Took = sum
	return r, nil
}
