// Package accesslog reads access logs: common and combined lines as Apache and
// nginx write them, with the latency that people append to them, and JSON lines
// in the spellings of nginx, Caddy, Traefik, zap, zerolog and slog.
package accesslog

import (
	"bytes"
	"errors"
	"time"
)

// Request is what one line says about one request.
type Request struct {
	Stamp   time.Time     // as logged
	AtEnd   bool          // the stamp is when the request ended, not when it came
	Coarse  bool          // the stamp is a whole second
	Timed   bool          // the line says how long it took
	Took    time.Duration // zero when it is not timed
	Route   string        // method and path, with what looks like an identifier folded into {}
	Caller  string        // who asked; empty when the line does not say
	Status  int           // zero when the line does not say
	Latency string        // where the latency was found and how it was read
}

// Stamp says which end of a request its logged time is.
type Stamp string

// The stamps.
const (
	Guess Stamp = ""      // the start where the latency is Apache's %D, else the end
	Start Stamp = "start" // Apache, whose %t is when the request came
	End   Stamp = "end"   // nginx and most others, who write a line when they are done
)

// Options say what a log does not say about itself. The zero value guesses.
type Options struct {
	Latency string        // the JSON field, or the number of the field in a text line; empty: what looks like one
	Unit    time.Duration // of a latency written as a bare number; zero: guess
	Stamp   Stamp
	Caller  string // the JSON field that tells callers apart; empty: the address
}

// What is wrong with a line that cannot be read.
var (
	ErrFormat  = errors.New("neither a common, combined nor JSON line")
	ErrTime    = errors.New("no time that can be read")
	ErrRequest = errors.New("no request that can be read")
	ErrJSON    = errors.New("broken JSON")
)

// Parser reads lines. It keeps scratch space between lines and is not safe for
// concurrent use.
type Parser struct {
	Options
	fields []field
	keys   map[string]knownKey // what JSON keys hold, found out once
	clock  stampCache
}

// NewParser returns a parser.
func NewParser(o Options) *Parser {
	return &Parser{Options: o, keys: map[string]knownKey{}}
}

// Parse reads one line, without its newline. Errors are those of this package.
func (p *Parser) Parse(line []byte) (Request, error) {
	line = bytes.TrimSpace(line)
	if len(line) > 0 && line[0] == '{' {
		return p.parseJSON(line)
	}
	return p.parseText(line)
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
