package accesslog

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// longest is the longest time a request is believed to have taken.
const longest = 24 * time.Hour

// times reads a number of units. What is negative, not a number or longer than a
// day is none.
func times(s string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n*float64(unit) > float64(longest) {
		return 0, false
	}
	return time.Duration(n * float64(unit)), true
}

// duration reads what Go writes: "12.5ms", "0.004s".
func duration(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0 && d <= longest
}

func status(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < 1000
}

// stampOf reads an instant: RFC 3339, the common log's, or a number since 1970 in
// seconds, milliseconds, microseconds or nanoseconds, told by its size.
func stampOf(s string) (at time.Time, coarse, ok bool) {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		at, ok = sinceEpoch(n)
		return at, ok && !strings.ContainsRune(s, '.') && n < 1e11, ok
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", clfTime, "2006-01-02 15:04:05.999999999"} {
		if at, err := time.Parse(layout, s); err == nil && plausible(at) {
			return at, at.Nanosecond() == 0 && !strings.ContainsAny(s, ".,"), true
		}
	}
	return time.Time{}, false, false
}

func sinceEpoch(n float64) (time.Time, bool) {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		seconds := n * unit.Seconds()
		if seconds >= 1e11 || math.IsNaN(seconds) {
			continue
		}
		whole, part := math.Modf(seconds)
		at := time.Unix(int64(whole), int64(part*1e9)).UTC()
		return at, plausible(at)
	}
	return time.Time{}, false
}

// address cuts the port off, where there is one.
func address(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		return host
	}
	return s
}
