package verdict

import (
	"strings"
	"time"
)

// hint reads from a response's header for how long its server asks to stay away,
// and reports whether it asked at all. Of several fields the most exact one
// wins:
//
//  1. milliseconds of a vendor: Retry-After-Ms, X-Ms-Retry-After-Ms,
//     X-Amz-Retry-After
//  2. Retry-After, in seconds or as a date
//  3. RateLimit, when it says that nothing remains
//  4. X-RateLimit-Reset-After
//  5. RateLimit-Reset and its relatives, when nothing remains
//
// Numbers from 1e9 on are instants, not spans: a "Retry-After: 1743000000" is a
// date, and waiting 55 years for it is a known accident. Dates are read against
// the response's own Date, so that a wrong clock on either side does no harm, and
// a date in the past means now. Negative, empty and malformed values are no hint,
// which is not the same as zero. Of several lines of one field the largest counts.
// The cost is bounded whatever the header holds.
func hint(h map[string][]string, now time.Time) (time.Duration, bool) {
	for _, field := range millisecondFields {
		if d, ok := largest(h[field], parseMilliseconds); ok {
			return d, true
		}
	}
	clock := serverClock(h, now)
	d, ok := largest(h["Retry-After"], func(s string) (time.Duration, bool) { return parseRetryAfter(s, clock) })
	after, okAfter := largest(h["X-Ratelimit-Reset-After"], parseSeconds)
	if ok {
		if okAfter && inMilliseconds(d, after) {
			return after, true
		}
		return d, true
	}
	if d, ok := largest(h["Ratelimit"], parseRateLimit); ok {
		return d, true
	}
	if okAfter {
		return after, true
	}
	return resetHint(h, clock)
}

// Some servers have sent Retry-After in milliseconds beside an exact
// Reset-After in seconds. A thousandfold is no coincidence.
func inMilliseconds(retryAfter, resetAfter time.Duration) bool {
	return resetAfter > 0 && retryAfter >= 900*resetAfter && retryAfter <= 1100*resetAfter
}

var millisecondFields = [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After"}

// resetFields pairs what remains with when there will be more. A reset counts only
// when nothing remains: otherwise it says when the window ends, not when to call.
var resetFields = [...][2]string{
	{"Ratelimit-Remaining", "Ratelimit-Reset"},
	{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	{"X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"},
	{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
	{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
}

func resetHint(h map[string][]string, clock time.Time) (longest time.Duration, found bool) {
	for _, pair := range resetFields {
		if !nothingLeft(h, pair[0]) {
			continue
		}
		d, ok := largest(h[pair[1]], func(s string) (time.Duration, bool) { return parseReset(s, clock) })
		if ok {
			longest, found = max(longest, d), true
		}
	}
	return longest, found
}

// nothingLeft reports whether field says zero.
func nothingLeft(h map[string][]string, field string) bool {
	for _, v := range h[field] {
		if v = strings.TrimSpace(v); v == "0" || v == "0.0" {
			return true
		}
	}
	return false
}

// serverClock returns the server's idea of now, if it is within a day of ours.
func serverClock(h map[string][]string, now time.Time) time.Time {
	date := h["Date"]
	if len(date) == 0 || len(date[0]) > maxValue {
		return now
	}
	t, err := parseDate(strings.TrimSpace(date[0]))
	if err != nil || t.Sub(now).Abs() > 24*time.Hour {
		return now
	}
	return t
}

// largest parses each line and returns the longest span, so that no line of
// the server's is ignored.
func largest(lines []string, parse func(string) (time.Duration, bool)) (longest time.Duration, found bool) {
	for i, line := range lines {
		if i == maxLines {
			break
		}
		if d, ok := parse(strings.TrimSpace(line)); ok {
			longest, found = max(longest, d), true
		}
	}
	return longest, found
}
