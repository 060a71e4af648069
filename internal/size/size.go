// Package size answers "which number goes where": from a rate and a latency, or from an
// access log, which it also replays through the gate to show what would have been
// turned away.
//
//	headgate size -rps 500 -p50 30ms -p99 120ms
//	headgate size -accesslog access.log
//	headgate size -accesslog access.log -rate 20 -burst 40 -level 'POST /checkout=critical'
//
// It knows the default formats of common servers, proxies and loggers (see package
// accesslog), gzipped or not, and "-" is the standard input. Memory does not grow with the log; what the replay needs is kept in a
// temporary file.
package size

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate-go/headgate/internal/size/accesslog"
	"github.com/headgate-go/headgate/internal/size/traffic"
	"github.com/headgate-go/headgate/priority"
)

// config is what the command line says.
type config struct {
	rps      float64
	p50, p99 time.Duration
	callers  int

	log   string
	parse accesslog.Options
	rows  int
	html  string // the page to write; empty: none

	window int // of the stream

	try    numbers
	levels map[string]priority.Level
}

// numbers are those of a gate; zero: as suggested.
type numbers struct {
	rate     float64
	burst    int
	max      int // of shed.Throughput
	fixed    int // shed.Fixed instead
	wait     time.Duration
	deadline time.Duration
}

// Run is the program, with its output.
func Run(w io.Writer, args []string) error {
	c, err := parseFlags(w, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case c.log != "":
		return sizeLog(w, c)
	case c.rps > 0:
		return sizeNumbers(w, c)
	}
	return errors.New("give -rps, -p50 and -p99, or -accesslog FILE; -h tells more")
}

func parseFlags(w io.Writer, args []string) (*config, error) {
	c := &config{levels: map[string]priority.Level{}, window: traffic.Window}
	f := flag.NewFlagSet("size", flag.ContinueOnError)
	f.SetOutput(w)
	f.Float64Var(&c.rps, "rps", 0, "requests a second, in the busiest minute you want to serve")
	f.DurationVar(&c.p50, "p50", 0, "median latency; with -accesslog: for lines that do not say how long they took")
	f.DurationVar(&c.p99, "p99", 0, "99th percentile of the latency")
	f.IntVar(&c.callers, "callers", 0, "callers that are active at once, to suggest a rate for each")
	f.StringVar(&c.log, "accesslog", "", "the log to read; - is the standard input")
	f.Func("latency", "`FIELD:UNIT` of a line's latency: a key, or the field's number (quoted text is one field), and s, ms, us or ns; may be repeated for a log of several formats", c.setLatency)
	f.DurationVar(&c.parse.Unit, "unit", 0, "unit of every latency written as a bare number: 1s, 1ms, 1us, 1ns")
	f.StringVar((*string)(&c.parse.Stamp), "stamp", "", "a line's time is the request's start or end; default: as Apache or nginx do it, by the look of the line")
	f.StringVar(&c.parse.Caller, "caller", "", "the JSON field that tells callers apart; default: the client's address")
	f.IntVar(&c.rows, "rows", 12, "most routes to show")
	f.StringVar(&c.html, "html", "", "also write the report to this `file` as one page with charts, to open in a browser")
	f.Float64Var(&c.try.rate, "rate", 0, "try this rate per caller")
	f.IntVar(&c.try.burst, "burst", 0, "try this burst per caller")
	f.IntVar(&c.try.max, "max", 0, "try shed.Throughput with this Max")
	f.IntVar(&c.try.fixed, "fixed", 0, "try shed.Fixed of so many slots")
	f.DurationVar(&c.try.wait, "wait", 0, "try this MaxWait")
	f.DurationVar(&c.try.deadline, "deadline", 0, "give every request so long, from its arrival")
	f.Func("level", "a route's level, such as 'POST /checkout=critical'; may be repeated", c.setLevel)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if c.log == "" && f.NArg() == 1 {
		c.log = f.Arg(0)
	} else if f.NArg() > 0 {
		return nil, fmt.Errorf("%q: flags go before the log, and one log is read at a time", f.Arg(0))
	}
	return c, c.check()
}

// setLatency takes FIELD, FIELD:UNIT or :UNIT.
func (c *config) setLatency(s string) error {
	l := accesslog.LatencyField{Name: s}
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		unit, ok := map[string]time.Duration{
			"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond, "µs": time.Microsecond, "ns": time.Nanosecond,
		}[s[i+1:]]
		if !ok {
			return fmt.Errorf("no unit %q: want s, ms, us or ns", s[i+1:])
		}
		l = accesslog.LatencyField{Name: s[:i], Unit: unit}
	}
	if l.Name == "" {
		c.parse.Unit = l.Unit
		return nil
	}
	c.parse.Latency = append(c.parse.Latency, l)
	return nil
}

func (c *config) setLevel(s string) error {
	i := strings.LastIndexByte(s, '=')
	if i < 1 {
		return errors.New("want ROUTE=LEVEL")
	}
	l, ok := priority.Parse(s[i+1:])
	if !ok {
		return fmt.Errorf("no such level: %q", s[i+1:])
	}
	c.levels[s[:i]] = l
	return nil
}

func (c *config) check() error {
	t := c.try
	switch {
	case c.rps < 0 || c.callers < 0 || c.rows < 0 || c.parse.Unit < 0:
		return errors.New("-rps, -callers, -rows and -unit must not be negative")
	case t.rate < 0 || t.burst < 0 || t.max < 0 || t.fixed < 0 || t.wait < 0 || t.deadline < 0:
		return errors.New("the numbers to try must not be negative")
	case t.max > 0 && t.fixed > 0:
		return errors.New("-max and -fixed exclude each other")
	case c.p50 < 0 || c.p99 < c.p50 || (c.p50 == 0) != (c.p99 == 0):
		return errors.New("-p50 and -p99 go together, and -p99 is at least -p50")
	case c.log == "" && c.html != "":
		return errors.New("-html needs a log")
	case c.log == "" && c.rps > 0 && c.p50 == 0:
		return errors.New("-rps needs -p50 and -p99")
	}
	switch c.parse.Stamp {
	case accesslog.Guess, accesslog.Start, accesslog.End:
		return nil
	}
	return fmt.Errorf("-stamp %q: want start or end", string(c.parse.Stamp))
}
