package admission

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// Headers says which fields tell clients about their limit, on every answer. The
// sets may be combined: IETFDraft11 | XRateLimit. Zero tells nothing.
//
// The numbers are those of the limit that refused, or else of the one nearest
// exhaustion: how much it holds when untouched, how many whole requests are left,
// and the whole seconds, rounded up, until a refused request would pass or the
// limit is untouched again. They are hints, not a reservation. An unlimited caller
// is told nothing. Both sets together cost two allocations.
type Headers uint8

const (
	// IETFDraft11 writes RateLimit-Policy and RateLimit as revision 11 of
	// draft-ietf-httpapi-ratelimit-headers has them:
	//
	//	RateLimit-Policy: "tenant";q=100;w=2
	//	RateLimit: "tenant";r=42;t=2
	//
	// The draft is still moving. A later revision will be an option of its own.
	IETFDraft11 Headers = 1 << iota

	// XRateLimit writes X-RateLimit-Limit, X-RateLimit-Remaining and
	// X-RateLimit-Reset. Reset counts seconds from now; it is never an epoch.
	XRateLimit

	allHeaders = IETFDraft11 | XRateLimit
)

func (h Headers) validate() error {
	if h&^allHeaders != 0 {
		return fmt.Errorf("unknown bits %#x", uint8(h&^allHeaders))
	}
	return nil
}

// An integer of a structured field has at most 15 digits (RFC 9651 §3.3.1).
const maxFieldInt = 999_999_999_999_999

// write sets the chosen fields, replacing what is there. All values are cut from
// one string and stored in one array made for this response.
func (h Headers) write(dst http.Header, p ratelimit.Policy, left int, reset time.Duration) {
	if h == 0 || p.Unlimited() {
		return
	}
	values, cuts := new([5]string), [5]int{}
	var stack [192]byte
	text := stack[:0]
	limit, remaining, seconds := fieldInt(int64(p.Burst)), fieldInt(int64(left)), wholeSeconds(reset)

	if h&IETFDraft11 != 0 {
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
	h.set(dst, values)
}

func (h Headers) set(dst http.Header, values *[5]string) {
	if h&IETFDraft11 != 0 {
		dst["Ratelimit-Policy"] = values[0:1:1]
		dst["Ratelimit"] = values[1:2:2]
	}
	if h&XRateLimit != 0 {
		dst["X-Ratelimit-Limit"] = values[2:3:3]
		dst["X-Ratelimit-Remaining"] = values[3:4:4]
		dst["X-Ratelimit-Reset"] = values[4:5:5]
	}
}

// once leaves one value in each of the chosen fields: a handler that is a proxy adds
// those of its upstream to what the gate has set.
func (h Headers) once(dst http.Header) {
	if h&IETFDraft11 != 0 {
		first(dst, "Ratelimit-Policy")
		first(dst, "Ratelimit")
	}
	if h&XRateLimit != 0 {
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
