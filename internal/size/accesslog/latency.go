package accesslog

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"time"
)

// longest is the longest time a request is believed to have taken.
const longest = 24 * time.Hour

// read reads a latency of which the shape tells the unit; zero: it does not. It reports
// whether the text is a latency at all; one that cannot be believed, or whose unit is
// not known, is none to be counted but is one to be told of.
func (p *Parser) read(r *Request, name string, text []byte, natural time.Duration) bool {
	return p.readIn(r, name, text, 0, natural)
}

// readIn is read with the unit that the options give to the field.
func (p *Parser) readIn(r *Request, name string, text []byte, chosen, natural time.Duration) bool {
	number, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
		return readDuration(r, name, text)
	}
	unit := cmp.Or(chosen, p.Unit, natural)
	r.Field, r.Unit = name, unit
	switch {
	case unit == 0:
		r.Asked, r.Raw = true, number
	case number < 0:
		r.Flaw = ErrNegative
	case number*float64(unit) > float64(longest):
		r.Flaw = ErrTooLong
	default:
		r.Took, r.Timed = time.Duration(math.Round(number*float64(unit))), true
	}
	return true
}

// readDuration reads what carries its unit: "12.5ms", "0.004s", "12 ms".
func readDuration(r *Request, name string, text []byte) bool {
	d, err := time.ParseDuration(string(bytes.ReplaceAll(text, []byte(" "), nil)))
	if err != nil {
		return false
	}
	r.Field, r.Unit = name, 0
	switch {
	case d < 0:
		r.Flaw = ErrNegative
	case d > longest:
		r.Flaw = ErrTooLong
	default:
		r.Took, r.Timed = d, true
	}
	return true
}

// isWhole reports whether a text is digits only.
func isWhole[T string | []byte](s T) bool {
	for i := range len(s) {
		if !digit(s[i]) {
			return false
		}
	}
	return len(s) > 0
}

// isMillis reports whether a text is a number with three decimals, as nginx writes
// seconds.
func isMillis(s []byte) bool {
	i := bytes.IndexByte(s, '.')
	return i > 0 && len(s)-i == 4 && isWhole(s[:i]) && isWhole(s[i+1:])
}
