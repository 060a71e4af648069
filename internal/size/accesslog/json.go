package accesslog

import (
	"encoding/json"
	"strings"
	"time"
)

// what a JSON key holds.
type what uint8

const (
	nothing what = iota
	stampKey
	methodKey
	pathKey
	requestKey // a request line, or an object with the request's fields
	statusKey
	latencyKey
	callerKey
	whats
)

// names are the spellings in use, in lower case and without punctuation.
var names = map[string]what{
	"time": stampKey, "ts": stampKey, "timestamp": stampKey, "timeiso8601": stampKey, "timelocal": stampKey,
	"msec": stampKey, "starttime": stampKey, "startutc": stampKey, "datetime": stampKey,
	"method": methodKey, "requestmethod": methodKey, "httpmethod": methodKey, "verb": methodKey,
	"path": pathKey, "uri": pathKey, "requesturi": pathKey, "url": pathKey, "requesturl": pathKey,
	"requestpath": pathKey, "urlpath": pathKey,
	"request": requestKey, "httprequest": requestKey, "http": requestKey, "req": requestKey, "response": requestKey,
	"status": statusKey, "statuscode": statusKey, "responsestatus": statusKey, "downstreamstatus": statusKey,
	"duration": latencyKey, "latency": latencyKey, "requesttime": latencyKey, "elapsed": latencyKey,
	"took": latencyKey, "responsetime": latencyKey, "timetaken": latencyKey, "dur": latencyKey,
	"remoteip": callerKey, "clientip": callerKey, "remoteaddr": callerKey, "remotehost": callerKey,
	"ip": callerKey, "client": callerKey, "clienthost": callerKey,
}

// units are the suffixes by which a latency's name tells its unit.
var units = []struct {
	suffix string
	unit   time.Duration
}{
	{"seconds", time.Second}, {"sec", time.Second}, {"millis", time.Millisecond}, {"micros", time.Microsecond},
	{"nanos", time.Nanosecond}, {"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond}, {"s", time.Second},
}

// found is what the keys of one line hold, as it is written.
type found struct {
	value [whats][]byte
	key   [whats]string
}

func (p *Parser) parseJSON(line []byte) (r Request, err error) {
	if !json.Valid(line) {
		return r, ErrJSON
	}
	var f found
	p.collect(line, &f, true)
	var ok bool
	if r.Stamp, r.Coarse, ok = stampOf(text(f.value[stampKey])); !ok {
		return r, ErrTime
	}
	r.Status, _ = status(text(f.value[statusKey]))
	if r.Route, ok = routeOfJSON(&f, r.Status); !ok {
		return r, ErrRequest
	}
	r.Caller = address(absent(text(f.value[callerKey])))
	p.jsonLatency(&f, &r)
	r.AtEnd = p.Stamp != Start
	return r, nil
}

// collect sorts the fields of an object by what they hold, those of the objects for
// the request and the response included. What stands outside counts before what
// stands inside.
func (p *Parser) collect(object []byte, f *found, outer bool) {
	var inner found
	fields(object, func(key, value []byte) {
		known := p.whatIs(key)
		switch {
		case known.what == nothing || string(value) == "null" || value[0] == '[':
		case value[0] != '{':
			f.offer(known.what, known.key, value)
		case known.what == requestKey && outer:
			p.collect(value, &inner, false)
		}
	})
	for w := range inner.value {
		if f.value[w] == nil {
			f.value[w], f.key[w] = inner.value[w], inner.key[w]
		}
	}
}

// offer decides between two keys that hold the same: the shorter name, then the
// earlier in the alphabet, so that the order in the line does not matter.
func (f *found) offer(w what, key string, value []byte) {
	old := f.key[w]
	if f.value[w] == nil || len(key) < len(old) || len(key) == len(old) && key < old {
		f.value[w], f.key[w] = value, key
	}
}

const mostKeys = 4096 // a stranger's log must not grow the table without end

// knownKey is a key that was seen before.
type knownKey struct {
	key  string
	what what
}

func (p *Parser) whatIs(key []byte) knownKey {
	if k, seen := p.keys[string(key)]; seen {
		return k
	}
	k := knownKey{string(key), p.classify(string(key))}
	if len(p.keys) < mostKeys {
		p.keys[k.key] = k
	}
	return k
}

func (p *Parser) classify(key string) what {
	switch {
	case p.Latency != "" && key == p.Latency:
		return latencyKey
	case p.Caller != "" && key == p.Caller:
		return callerKey
	}
	name := plain(key)
	w := names[name]
	if w == nothing {
		bare, _ := cutUnit(name)
		if w = names[bare]; w != latencyKey {
			w = nothing
		}
	}
	if w == latencyKey && p.Latency != "" || w == callerKey && p.Caller != "" {
		return nothing
	}
	return w
}

// jsonLatency reads the latency: a duration as Go writes it, a number whose name
// tells the unit, a number with a fraction (seconds: nginx, Caddy, zap), or a
// whole number (nanoseconds: slog, Traefik).
func (p *Parser) jsonLatency(f *found, r *Request) {
	s, key := text(f.value[latencyKey]), f.key[latencyKey]
	unit, how := p.Unit, ""
	if unit == 0 {
		_, unit = cutUnit(plain(key))
	}
	switch {
	case unit > 0:
	case strings.ContainsAny(s, ".eE"):
		unit = time.Second
	default:
		unit = time.Nanosecond
	}
	took, ok := times(s, unit)
	if how = unit.String()[1:]; !ok {
		took, ok = duration(s)
		how = "a duration"
	}
	if ok {
		r.Took, r.Timed, r.Latency = took, true, "field "+key+", read as "+how
	}
}

// plain returns a key in lower case and without punctuation.
func plain(key string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c == '@' || c == ' ' {
			return -1
		}
		return c
	}, strings.ToLower(key))
}

// cutUnit splits a name such as durationms; without a unit the second is zero.
func cutUnit(name string) (bare string, unit time.Duration) {
	for _, u := range units {
		if bare, ok := strings.CutSuffix(name, u.suffix); ok && names[bare] == latencyKey {
			return bare, u.unit
		}
	}
	return name, 0
}

// text returns a JSON string's text, or a number as it is written.
func text(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return string(raw)
	}
	if s := string(raw[1 : len(raw)-1]); !strings.ContainsRune(s, '\\') {
		return s
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
