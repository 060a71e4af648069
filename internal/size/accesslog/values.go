package accesslog

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

func status(s string) (int, bool) {
	if s == "-" || s == "-1" { // the client left, or no answer came
		return 0, true
	}
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
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", clfTime,
		"2006-01-02 15:04:05.999999999", "2006/01/02 15:04:05.999999999",
	} {
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

// address returns the first of a list of addresses without its port.
func address(s string) string {
	s, _, _ = strings.Cut(s, ",")
	if host, _, err := net.SplitHostPort(s); err == nil {
		return host
	}
	return strings.TrimSpace(s)
}
