package accesslog

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// what a key holds.
type what uint8

const (
	nothing what = iota
	stampKey
	startKey // a stamp that says it is the start
	methodKey
	pathKey
	requestKey // a request line, or an object with the request's fields
	statusKey
	latencyKey
	callerKey
	levelKey
	loggerKey
	lineKey  // a whole line inside a container's
	traitKey // tells programs apart, see dialect
	whats
)

// names are the spellings in use, in lower case and without punctuation.
var names = map[string]what{
	"time": stampKey, "ts": stampKey, "timestamp": stampKey, "timeiso8601": stampKey, "timelocal": stampKey,
	"msec": stampKey, "datetime": stampKey, "starttime": startKey, "startutc": startKey,
	"method": methodKey, "requestmethod": methodKey, "httpmethod": methodKey, "verb": methodKey,
	"path": pathKey, "uri": pathKey, "requesturi": pathKey, "url": pathKey, "requesturl": pathKey,
	"requestpath": pathKey, "urlpath": pathKey,
	"request": requestKey, "httprequest": requestKey, "http": requestKey, "req": requestKey,
	"response": requestKey, "res": requestKey,
	"status": statusKey, "statuscode": statusKey, "responsestatus": statusKey, "downstreamstatus": statusKey,
	"responsecode": statusKey,
	"duration":     latencyKey, "latency": latencyKey, "requesttime": latencyKey, "elapsed": latencyKey,
	"took": latencyKey, "responsetime": latencyKey, "timetaken": latencyKey, "dur": latencyKey,
	"remoteip": callerKey, "clientip": callerKey, "remoteaddr": callerKey, "remotehost": callerKey,
	"ip": callerKey, "client": callerKey, "clienthost": callerKey, "remoteaddress": callerKey,
	"xforwardedfor": callerKey, "downstreamremoteaddress": callerKey,
	"level": levelKey, "logger": loggerKey, "log": lineKey,
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
	value  [whats][]byte
	key    [whats]string
	traits trait
	pairs  bool // key=value rather than JSON
}

func (p *Parser) parseJSON(line []byte) (r Request, err error) {
	if !json.Valid(line) {
		return r, ErrJSON
	}
	var f found
	p.collect(line, &f, true)
	if inner := text(f.value[lineKey]); inner != "" && f.value[methodKey] == nil && !p.inner {
		p.inner = true
		defer func() { p.inner = false }()
		return p.Parse([]byte(inner))
	}
	return p.fromFound(&f)
}

// fromFound reads a request from what the keys of a line hold.
func (p *Parser) fromFound(f *found) (r Request, err error) {
	stamp := stampKey
	if f.value[startKey] != nil {
		stamp = startKey
	}
	var ok bool
	if r.Stamp, r.Coarse, ok = stampOf(text(f.value[stamp])); !ok {
		return r, ErrTime
	}
	r.Status, _ = status(text(f.value[statusKey]))
	if r.Route, ok = routeOfJSON(f, r.Status); !ok {
		return r, ErrRequest
	}
	r.Caller = absent(text(f.value[callerKey]))
	if p.Caller == "" {
		r.Caller = address(r.Caller)
	}
	format, natural := f.dialect()
	r.Format = format
	p.keyLatency(f, &r, natural)
	p.stamped(&r, stamp == stampKey)
	return r, nil
}

// keyLatency reads the latency: what carries its unit, a number whose name tells it,
// and else a number in the unit that the program writes.
func (p *Parser) keyLatency(f *found, r *Request, natural func(value string) time.Duration) {
	key, value := f.key[latencyKey], text(f.value[latencyKey])
	if value == "" || value == "-" {
		return
	}
	_, chosen := p.chosenKey(key)
	unit := natural(value)
	if _, named := cutUnit(plain(key)); named > 0 {
		unit = named
	}
	p.readIn(r, key, []byte(value), chosen, unit)
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
			f.offer(known, value)
		case known.what == requestKey && outer:
			p.collect(value, &inner, false)
		}
	})
	f.traits |= inner.traits
	for w := range inner.value {
		if f.value[w] == nil {
			f.value[w], f.key[w] = inner.value[w], inner.key[w]
		}
	}
}

// offer decides between two keys that hold the same: the shorter name, then the
// earlier in the alphabet, so that the order in the line does not matter.
func (f *found) offer(known knownKey, value []byte) {
	f.traits |= known.trait
	w, key := known.what, known.key
	if w == traitKey || w == callerKey && string(value) == `"-"` {
		return
	}
	old := f.key[w]
	if f.value[w] == nil || len(key) < len(old) || len(key) == len(old) && key < old {
		f.value[w], f.key[w] = value, key
	}
}

const mostKeys = 4096 // a stranger's log must not grow the table without end

// knownKey is a key that was seen before.
type knownKey struct {
	key   string
	what  what
	trait trait
}

func (p *Parser) whatIs(key []byte) knownKey {
	if k, seen := p.keys[string(key)]; seen {
		return k
	}
	k := knownKey{key: string(key), what: p.classify(string(key)), trait: traits[string(key)]}
	if k.what == nothing && k.trait != 0 {
		k.what = traitKey
	}
	if len(p.keys) < mostKeys {
		p.keys[k.key] = k
	}
	return k
}

func (p *Parser) classify(key string) what {
	chosen, _ := p.chosenKey(key)
	switch {
	case chosen:
		return latencyKey
	case p.Caller != "" && key == p.Caller:
		return callerKey
	}
	w := meaning(key)
	if i := strings.LastIndexByte(key, '.'); w == nothing && i >= 0 { // a group: http.method
		w = meaning(key[i+1:])
	}
	if w == latencyKey && p.choosesKey() || w == callerKey && p.Caller != "" {
		return nothing
	}
	return w
}

// choosesKey reports whether the options name a key, rather than the number of a field.
func (p *Parser) choosesKey() bool {
	for _, l := range p.Latency {
		if _, err := strconv.Atoi(l.Name); err != nil {
			return true
		}
	}
	return false
}

func meaning(key string) what {
	name := plain(key)
	if w := names[name]; w != nothing {
		return w
	}
	if bare, unit := cutUnit(name); unit > 0 {
		return names[bare]
	}
	return nothing
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

// text returns a string's text, as JSON or Go quotes it, or a number as it is written.
func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return string(raw)
	}
	if s := string(raw[1 : len(raw)-1]); !strings.ContainsRune(s, '\\') {
		return s
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s, _ = strconv.Unquote(string(raw))
	}
	return s
}
