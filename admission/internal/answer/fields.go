package answer

import (
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
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

// Write sets the chosen fields, replacing what is there. What a limit says of itself is
// rendered once; the rest is cut from one string, and all values are stored in one array
// made for this response.
func (f Fields) Write(dst http.Header, p ratelimit.Policy, left int, reset time.Duration) {
	if f == 0 || p.Unlimited() {
		return
	}
	w := wordsOf(&p)
	now := f.now(w, fieldInt(int64(left)), wholeSeconds(reset))
	values := f.room()
	if f&Draft11 != 0 {
		values[0], values[1] = w.policy, now.item
		dst["Ratelimit-Policy"], dst["Ratelimit"] = values[0:1:1], values[1:2:2]
		values = values[2:]
	}
	if f&XRateLimit != 0 {
		values[0], values[1], values[2] = w.limit, now.remaining, now.seconds
		dst["X-Ratelimit-Limit"] = values[0:1:1]
		dst["X-Ratelimit-Remaining"] = values[1:2:2]
		dst["X-Ratelimit-Reset"] = values[2:3:3]
	}
}

// room returns an array for as many values as the sets have fields.
func (f Fields) room() []string {
	switch f & AllFields {
	case Draft11:
		return new([2]string)[:]
	case XRateLimit:
		return new([3]string)[:]
	}
	return new([5]string)[:]
}

// balance is what a limit says of one caller: RateLimit, and the numbers in it.
type balance struct{ item, remaining, seconds string }

// now renders a balance as one string, or as none where nothing new has to be said.
func (f Fields) now(w *words, remaining, seconds int64) balance {
	if f&Draft11 == 0 && remaining < int64(len(small)) && seconds < int64(len(small)) {
		return balance{remaining: small[remaining], seconds: small[seconds]}
	}
	var stack [96]byte
	text := stack[:0]
	if f&Draft11 != 0 {
		text = append(text, w.item...)
	}
	from := len(text)
	text = strconv.AppendInt(text, remaining, 10)
	to := len(text)
	text = strconv.AppendInt(append(text, ";t="...), seconds, 10)
	all := string(text)
	return balance{all, all[from:to], all[to+len(";t="):]}
}

// small are the numbers that most balances are made of, and the seconds of an hour, cut
// from one string.
var small = func() (texts [3601]string) {
	var cuts [len(texts) + 1]int
	var all []byte
	for i := range texts {
		all = strconv.AppendInt(all, int64(i), 10)
		cuts[i+1] = len(all)
	}
	text := string(all)
	for i := range texts {
		texts[i] = text[cuts[i]:cuts[i+1]]
	}
	return texts
}()

// number returns the text of n.
func number(n int64) string {
	if n < int64(len(small)) {
		return small[n]
	}
	return strconv.FormatInt(n, 10)
}

// words are what a limit says of itself.
type words struct {
	of     ratelimit.Policy
	policy string // RateLimit-Policy
	item   string // the beginning of RateLimit, up to what remains
	limit  string // X-RateLimit-Limit
}

// known has the words of the limits that were told of lately, each in the place that its
// numbers choose.
var known [64]atomic.Pointer[words]

func wordsOf(p *ratelimit.Policy) *words {
	mix := uint64(p.Burst) ^ math.Float64bits(float64(p.Rate)) ^ uint64(len(p.Name))<<40
	place := &known[mix*0x9e3779b97f4a7c15>>58]
	if w := place.Load(); w != nil && w.of == *p {
		return w
	}
	limit := fieldInt(int64(p.Burst))
	w := &words{
		of: *p, policy: string(appendPolicy(nil, *p, limit)),
		item: string(append(appendName(nil, p.Name), ";r="...)), limit: strconv.FormatInt(limit, 10),
	}
	place.Store(w)
	return w
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
