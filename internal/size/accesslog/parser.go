// Package accesslog reads access logs as programs write them by default: nginx,
// ingress-nginx, Apache, Traefik, Caddy, HAProxy, Envoy and Istio, AWS's application
// load balancer, zerolog, pino, slog, zap, chi, gin, echo. Each line is recognised by its own
// shape, so a log may change its format midway.
//
// A latency whose unit the shape does not tell is not read: [Request.Asked] says so.
package accesslog

import (
	"bytes"
	"errors"
	"time"
)

// Request is what one line says about one request.
type Request struct {
	Stamp  time.Time     // as logged
	AtEnd  bool          // the stamp is when the request ended, not when it came
	Coarse bool          // the stamp is a whole second
	Timed  bool          // the line says how long it took
	Took   time.Duration // zero when it is not timed
	Route  string        // method and path, with what looks like an identifier folded into {}
	Caller string        // the client's address or name; empty when the line does not say
	Status int           // zero when the line does not say

	Reading
	Raw  float64 // the number of unknown unit, where Asked
	Flaw error   // why a latency that is there is not believed: ErrNegative, ErrTooLong
}

// Reading says how a line was understood.
type Reading struct {
	Format string        // the program or the format
	Field  string        // where the latency is; empty: the line has none
	Unit   time.Duration // it was read in; zero: the value carries its own
	Asked  bool          // Field may be a latency, but its unit cannot be known
}

// Stamp says which end of a request its logged time is.
type Stamp string

// The stamps.
const (
	Guess Stamp = ""      // as the program that is recognised does it
	Start Stamp = "start" // Apache, Traefik, HAProxy, Envoy
	End   Stamp = "end"   // nginx and most others, which write a line when they are done
)

// Options say what a log does not say about itself. The zero value takes every line
// for what its shape says.
type Options struct {
	Latency []LatencyField // where to look; empty: where the format has it
	Unit    time.Duration  // of every latency written as a bare number; zero: the format's
	Stamp   Stamp
	Caller  string // the field of a JSON line or of key=value pairs that tells callers apart; empty: the address
}

// LatencyField is a field that holds the latency.
type LatencyField struct {
	Name string        // a key, or the number of the field in a text line, from 1
	Unit time.Duration // of a bare number; zero: the format's
}

// What is wrong with a line that cannot be read.
var (
	ErrFormat  = errors.New("no format that is known")
	ErrTime    = errors.New("no time that can be read")
	ErrRequest = errors.New("no request that can be read")
	ErrJSON    = errors.New("broken JSON")
)

// What is wrong with a latency that is not believed.
var (
	ErrNegative = errors.New("negative")
	ErrTooLong  = errors.New("longer than a day")
)

// Parser reads lines. It keeps scratch space between lines and is not safe for
// concurrent use.
type Parser struct {
	Options
	fields []field
	keys   map[string]knownKey // what keys hold, found out once
	clock  stampCache
	inner  bool // inside another line
}

// NewParser returns a parser.
func NewParser(o Options) *Parser {
	return &Parser{Options: o, keys: map[string]knownKey{}}
}

// Parse reads one line, without its newline. Errors are those of this package.
func (p *Parser) Parse(line []byte) (Request, error) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
	if len(line) > 0 && line[0] == '{' {
		return p.parseJSON(line)
	}
	r, err := p.parseText(line)
	if !errors.Is(err, ErrFormat) {
		return r, err
	}
	if i := bytes.Index(line, []byte(`{"`)); i > 0 && line[len(line)-1] == '}' {
		return p.parseJSON(line[i:]) // behind what a collector puts in front
	}
	return p.parsePairs(line)
}

// stamped decides which end of the request the stamp is.
func (p *Parser) stamped(r *Request, atEnd bool) {
	r.AtEnd = p.Stamp == End || p.Stamp == Guess && atEnd
}

// stampCache remembers the latest stamp: neighbours share their second.
type stampCache struct {
	text string
	at   time.Time
}

const clfTime = "02/Jan/2006:15:04:05 -0700"

func (c *stampCache) clf(text []byte) (time.Time, bool) {
	if string(text) == c.text && c.text != "" {
		return c.at, true
	}
	at, err := time.Parse(clfTime, string(text))
	if err != nil || !plausible(at) {
		return time.Time{}, false
	}
	c.text, c.at = string(text), at
	return at, true
}

// plausible keeps to the years in which instants have nanoseconds.
func plausible(at time.Time) bool { return at.Year() >= 1990 && at.Year() < 2200 }
