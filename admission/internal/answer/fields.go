package answer

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// Fields says which sets of fields tell clients about their limit.
type Fields uint8

// The sets.
const (
	Draft11    Fields = 1 << iota // RateLimit-Policy and RateLimit
	XRateLimit                    // X-RateLimit-Limit, -Remaining and -Reset

	AllFields = Draft11 | XRateLimit
)

// An integer of a structured field has at most 15 digits (RFC 9651 §3.3.1).
const maxFieldInt = 999_999_999_999_999

// Write sets the chosen fields, replacing what is there. All values are cut from
// one string and stored in one array made for this response.
func (f Fields) Write(dst http.Header, p ratelimit.Policy, left int, reset time.Duration) {
	if f == 0 || p.Unlimited() {
		return
	}
	values, cuts := new([5]string), [5]int{}
	var stack [192]byte
	text := stack[:0]
	limit, remaining, seconds := fieldInt(int64(p.Burst)), fieldInt(int64(left)), wholeSeconds(reset)

	if f&Draft11 != 0 {
		text = appendPolicy(text, p, limit)
		cuts[0] = len(text)
		text = appendParam(appendName(text, p.Name), ";r=", remaining)
		text = appendParam(text, ";t=", seconds)
	}
	cuts[1] = len(text)
	for i, n := range [...]int64{limit, remaining, seconds} {
		text = strconv.AppendInt(text, n, 10)
		cuts[2+i] = len(text)
	}
	all, start := string(text), 0
	for i, end := range cuts {
		values[i], start = all[start:end], end
	}
	f.set(dst, values)
}

func (f Fields) set(dst http.Header, values *[5]string) {
	if f&Draft11 != 0 {
		dst["Ratelimit-Policy"] = values[0:1:1]
		dst["Ratelimit"] = values[1:2:2]
	}
	if f&XRateLimit != 0 {
		dst["X-Ratelimit-Limit"] = values[2:3:3]
		dst["X-Ratelimit-Remaining"] = values[3:4:4]
		dst["X-Ratelimit-Reset"] = values[4:5:5]
	}
}

// Once leaves one value in each of the chosen fields: a handler that is a proxy adds
// those of its upstream to what the gate has set.
func (f Fields) Once(dst http.Header) {
	if f&Draft11 != 0 {
		first(dst, "Ratelimit-Policy")
		first(dst, "Ratelimit")
	}
	if f&XRateLimit != 0 {
		first(dst, "X-Ratelimit-Limit")
		first(dst, "X-Ratelimit-Remaining")
		first(dst, "X-Ratelimit-Reset")
	}
}

func first(dst http.Header, name string) {
	if values := dst[name]; len(values) > 1 {
		dst[name] = values[:1:1]
	}
}

// appendPolicy appends the policy as a structured field item. A window below a
// second has no spelling and is left out.
func appendPolicy(dst []byte, p ratelimit.Policy, limit int64) []byte {
	dst = appendParam(appendName(dst, p.Name), ";q=", limit)
	if p.Unit != "" {
		dst = appendName(append(dst, ";qu="...), p.Unit)
	}
	if w := windowSeconds(p); w > 0 {
		dst = appendParam(dst, ";w=", w)
	}
	return dst
}

// windowSeconds is the time in which the whole quota comes back; 0: never, or in
// less than a second.
func windowSeconds(p ratelimit.Policy) int64 {
	if p.Window > 0 {
		return fieldInt(int64(p.Window / time.Second))
	}
	const rounding = 1e-9 // a rate such as 10 per minute has no exact float
	seconds := float64(p.Burst) / float64(p.Rate) * (1 - rounding)
	if !(p.Rate > 0) || seconds < 1-2*rounding {
		return 0
	}
	return int64(math.Ceil(min(seconds, maxFieldInt)))
}

// wholeSeconds rounds up: an early client would be refused.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return fieldInt(seconds)
}

func fieldInt(n int64) int64 { return min(max(n, 0), maxFieldInt) }

func appendParam(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}

// appendName appends a String of RFC 9651 §3.3.3. It knows printable ASCII only;
// anything else in a name becomes an underscore.
func appendName(dst []byte, name string) []byte {
	if name == "" {
		name = "default"
	}
	dst = append(dst, '"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~':
			dst = append(dst, '_')
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
