package verdict

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	maxValue = 128 // longest field value that is looked at, in bytes
	maxLines = 8   // most lines of one field

	// farthest is the longest hint. A server that asks for more, or for more than a
	// clock can hold, asks to stay away for good: that is over every cap, and by no
	// means the same as no hint.
	farthest = 10 * 365 * 24 * time.Hour

	epochSeconds = 1e9  // from here on a number is seconds since 1970 (September 2001)
	epochMillis  = 1e12 // and from here on milliseconds
	beyondClocks = 1e15 // and from here on it is no instant of any clock
)

// parseRetryAfter reads Retry-After: seconds, with decimals if need be, an instant
// in any of HTTP's three forms, or an instant as a number. A list of numbers, which
// is what a proxy makes of several lines, counts as its largest.
func parseRetryAfter(s string, clock time.Time) (time.Duration, bool) {
	if d, ok := parseNumber(s, clock); ok {
		return d, true
	}
	if s == "" || len(s) > maxValue {
		return 0, false
	}
	if t, err := parseDate(s); err == nil {
		return until(t, clock), true
	}
	if !strings.Contains(s, ",") {
		return 0, false
	}
	return largest(strings.SplitN(s, ",", maxLines), func(s string) (time.Duration, bool) { return parseNumber(s, clock) })
}

// parseReset reads a reset: all that parseRetryAfter reads, spans such as "6m0s"
// and ISO 8601 spans and instants.
func parseReset(s string, clock time.Time) (time.Duration, bool) {
	if d, ok := parseRetryAfter(s, clock); ok {
		return d, true
	}
	if s == "" || len(s) > maxValue {
		return 0, false
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return until(t, clock), true
	}
	if rest, ok := strings.CutPrefix(s, "PT"); ok {
		s = strings.ToLower(rest) // PT1M30S is 1m30s
	}
	return parseDuration(s)
}

// parseDuration reads a span with units, such as "6m0s". One that does not fit into a
// time.Duration is well formed if it has the same form with fewer digits.
func parseDuration(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	if err != nil && len(s) <= maxValue {
		if digits := len(s) - len(strings.TrimLeft(s, "0123456789")); digits >= 7 {
			d, err = time.ParseDuration("1" + s[digits:])
			d = max(d, farthest)
		}
	}
	return min(d, farthest), err == nil && d >= 0
}

// parseNumber reads a span in seconds or an instant since 1970.
func parseNumber(s string, clock time.Time) (time.Duration, bool) {
	f, ok := parseDecimal(s)
	switch {
	case !ok:
		return 0, false
	case f >= beyondClocks:
		return farthest, true
	case f >= epochMillis:
		return until(time.UnixMilli(int64(f)), clock), true
	case f >= epochSeconds:
		return until(time.Unix(int64(f), 0), clock), true
	}
	return span(f, time.Second), true
}

func parseSeconds(s string) (time.Duration, bool) {
	f, ok := parseDecimal(s)
	return span(f, time.Second), ok
}

func parseMilliseconds(s string) (time.Duration, bool) {
	f, ok := parseDecimal(s)
	return span(f, time.Millisecond), ok
}

// span multiplies only what is known to fit: 1e10 seconds in nanoseconds overflow
// into the past, and a client that believes it retries at once, forever. Fractions
// are rounded up to the millisecond, so that no call is early.
func span(f float64, unit time.Duration) time.Duration {
	if f > float64(farthest/unit) {
		return farthest
	}
	ms := math.Ceil(f * float64(unit/time.Millisecond))
	return time.Duration(ms) * time.Millisecond
}

// parseDecimal reads digits with at most one point and nothing else: no sign, no
// exponent, no hexadecimal, no NaN. Of a number too long to be looked at whole the
// beginning is enough: it is beyond every clock.
func parseDecimal(s string) (float64, bool) {
	if s == "" || s[0] == '.' {
		return 0, false
	}
	points := 0
	for i := range min(len(s), maxValue) {
		switch {
		case s[i] == '.' && points == 0:
			points++
		case s[i] < '0' || s[i] > '9':
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(s[:min(len(s), maxValue)], 64)
	padded := len(s) > maxValue && points == 0 && f < beyondClocks // with zeros
	return f, err == nil && !padded
}

// until returns the span from clock to t, zero when t is past.
func until(t, clock time.Time) time.Duration { return min(max(t.Sub(clock), 0), farthest) }

// parseRateLimit reads the RateLimit field of the IETF draft in its list form
// (`"name";r=0;t=7`) and its older dictionary form (`limit=10, remaining=0, reset=7`),
// and returns the longest time to more quota among those with nothing left. A
// malformed field is ignored, as the draft asks.
func parseRateLimit(s string) (time.Duration, bool) {
	if len(s) > 8*maxValue {
		return 0, false
	}
	if strings.HasPrefix(s, `"`) {
		return largest(strings.SplitN(s, ",", maxLines), rateLimitItem)
	}
	return rateLimitItem(strings.ReplaceAll(s, ",", ";"))
}

// rateLimitItem reads one item's parameters. Names are not needed, and a name with
// a separator in it makes the item unreadable, which is no hint.
func rateLimitItem(s string) (time.Duration, bool) {
	remaining, reset := "", ""
	for param := range strings.SplitSeq(s, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		switch name {
		case "r", "remaining":
			remaining = value
		case "t", "reset":
			reset = value
		}
	}
	if remaining != "0" {
		return 0, false
	}
	return parseSeconds(reset)
}

// parseDate reads an instant in any of the three forms of HTTP.
func parseDate(s string) (t time.Time, err error) {
	for _, form := range [...]string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if t, err = time.Parse(form, s); err == nil {
			return t, nil
		}
	}
	return t, err
}
