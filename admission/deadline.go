package admission

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// Deadline says how long a request may take in all, counted from its arrival: wait
// and work together. The zero value says nothing. Make one with [TimeoutHeader],
// [GRPCTimeout], [EnvoyTimeout], [Within], or several with [Deadlines].
//
// Whatever a Deadline says, the deadline of the request's context counts too, and
// the earliest wins. A client can shorten its own time, never extend it beyond the
// maximum: a header that is absent, sent twice, unreadable, zero or negative
// leaves the maximum, and so does one that asks for more.
//
// A Deadline is a value, safe for concurrent use. Reading one allocates nothing
// unless the header is malformed.
type Deadline struct {
	max    time.Duration // 0: no limit of its own
	header string        // canonical; empty: none
	parse  func(string) (time.Duration, bool)
	also   []Deadline
}

// TimeoutHeader reads a header that holds a number of milliseconds ("250") or a Go
// duration ("1.5s"). Without it, longest applies; zero means that only the
// header counts. A negative longest is an error from New.
func TimeoutHeader(name string, longest time.Duration) Deadline {
	return Deadline{max: longest, header: timeoutName(name), parse: parseTimeout}
}

// GRPCTimeout reads the grpc-timeout header: one to eight digits and a unit of H,
// M, S, m, u or n. Without it, longest applies, as in [TimeoutHeader].
func GRPCTimeout(longest time.Duration) Deadline {
	return Deadline{max: longest, header: "Grpc-Timeout", parse: parseGRPC}
}

// EnvoyTimeout reads X-Envoy-Expected-Rq-Timeout-Ms, in which Envoy says how many
// milliseconds it will wait for the answer. Without it, longest applies, as in
// [TimeoutHeader].
func EnvoyTimeout(longest time.Duration) Deadline {
	return Deadline{max: longest, header: "X-Envoy-Expected-Rq-Timeout-Ms", parse: parseMillis}
}

// Within gives every request the same time, whatever its client says. Zero sets no
// limit; a negative time is an error from New.
func Within(longest time.Duration) Deadline { return Deadline{max: longest} }

// Deadlines combines several: the smallest wins.
func Deadlines(ds ...Deadline) Deadline { return Deadline{also: ds} }

// timeout returns the time a request with header h has from its arrival, and
// whether it has a limit at all.
func (d Deadline) timeout(h http.Header) (time.Duration, bool) {
	best := noTimeout
	if d.max > 0 {
		best = d.max
	}
	if d.header != "" {
		if value, ok := onlyValue(h[d.header]); ok && len(value) <= maxTimeoutText {
			if t, ok := d.parse(value); ok {
				best = min(best, t)
			}
		}
	}
	for _, other := range d.also {
		if t, ok := other.timeout(h); ok {
			best = min(best, t)
		}
	}
	return best, best < noTimeout
}

func (d Deadline) validate() error {
	var errs []error
	if d.max < 0 {
		errs = append(errs, fmt.Errorf("longest = %v: must not be negative", d.max))
	}
	for _, other := range d.also {
		errs = append(errs, other.validate())
	}
	return errors.Join(errs...)
}

// timeoutName is the canonical name of the header; an empty one panics, at set-up.
func timeoutName(name string) string {
	if name == "" {
		panic("admission: TimeoutHeader: the header's name is empty")
	}
	return http.CanonicalHeaderKey(name)
}

// onlyValue returns the value of a field that was sent exactly once. A field sent
// twice says nothing: there is no telling which line was meant.
func onlyValue(values []string) (string, bool) {
	if len(values) != 1 || values[0] == "" {
		return "", false
	}
	return values[0], true
}

const (
	noTimeout      = time.Duration(math.MaxInt64)
	maxTimeoutText = 32 // longer than any sensible number, far shorter than an attack
)

func parseTimeout(s string) (time.Duration, bool) {
	if t, ok := parseMillis(s); ok || allDigits(s) {
		return t, ok
	}
	t, err := time.ParseDuration(strings.TrimSpace(s))
	return t, err == nil && t > 0
}

func parseMillis(s string) (time.Duration, bool) { return parseUnits(s, time.Millisecond) }

// parseGRPC follows the grpc-timeout grammar: a positive integer of at most eight
// digits, then the unit.
func parseGRPC(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	digits, unit := s[:len(s)-1], grpcUnit(s[len(s)-1])
	if unit == 0 {
		return 0, false
	}
	return parseUnits(digits, unit)
}

func grpcUnit(c byte) time.Duration {
	switch c {
	case 'H':
		return time.Hour
	case 'M':
		return time.Minute
	case 'S':
		return time.Second
	case 'm':
		return time.Millisecond
	case 'u':
		return time.Microsecond
	case 'n':
		return time.Nanosecond
	}
	return 0
}

// parseUnits reads a positive decimal number of units. One too large for a
// Duration is the largest: the client will wait, and the maximum says how long.
func parseUnits(digits string, unit time.Duration) (time.Duration, bool) {
	if !allDigits(digits) {
		return 0, false
	}
	var n time.Duration
	limit := noTimeout / unit
	for i := range len(digits) {
		digit := time.Duration(digits[i] - '0')
		if n > (limit-digit)/10 {
			return noTimeout, true
		}
		n = n*10 + digit
	}
	return n * unit, n > 0
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// arrival is when the request came. It is read at its first use: what needs no
// deadline needs one reading of the clock less.
func (x exchange) arrival() time.Time {
	if x.arrived.IsZero() {
		x.tick()
		x.arrived = x.now
	}
	return x.arrived
}

// deadline is the earliest of the client's, the context's and the route's.
func (x exchange) deadline() time.Time {
	t, _ := x.config.Deadline.timeout(x.r.Header)
	if own := x.route.timeout; own > 0 {
		t = min(t, own)
	}
	at, limited := x.r.Context().Deadline()
	if t == noTimeout {
		return at
	}
	if own := x.arrival().Add(t); !limited || own.Before(at) {
		return own
	}
	return at
}

// answerMargin is kept of the server's timeouts for the refusal itself.
const answerMargin = 50 * time.Millisecond

// sendable is when an answer must be begun, before the server's timeouts cut the
// connection; zero: at any time. net/http lifts the read timeout where no body is left to
// be read. Both count from the head of the request: what the client took to send that is
// not seen here, and shortens the read timeout by as much.
func (x exchange) sendable() (by time.Time) {
	srv, _ := x.r.Context().Value(http.ServerContextKey).(*http.Server)
	if srv == nil {
		return time.Time{}
	}
	within := srv.WriteTimeout
	if t := srv.ReadTimeout; t > 0 && (within <= 0 || t < within) && hasBody(x.r) {
		within = t
	}
	if within <= 0 {
		return time.Time{}
	}
	return x.arrival().Add(max(within-max(answerMargin, within/10), time.Millisecond))
}

// hasBody reports whether a body is still to be read.
func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// opening bounds the time until a stream begins: its client waits for that, and a
// slot is held for it. It is a context that is cancelled, for the reason
// [context.DeadlineExceeded], if the deadline passes first; it states no Deadline,
// since what is begun has none.
type opening struct {
	context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// open starts the clock.
func open(parent context.Context, deadline time.Time) *opening {
	ctx, cancel := context.WithCancelCause(parent)
	timer := time.AfterFunc(time.Until(deadline), func() { cancel(context.DeadlineExceeded) })
	return &opening{ctx, cancel, timer}
}

// opening returns the bound on the stream's opening, or nil.
func (r *work) opening() *opening {
	o, _ := r.Context.(*opening)
	return o
}

// begun stops the clock.
func (o *opening) begun() {
	if o != nil {
		o.timer.Stop()
	}
}

// late reports whether the deadline passed before the stream began.
func (o *opening) late() bool {
	return o != nil && context.Cause(o.Context) == context.DeadlineExceeded
}

// over gives everything back.
func (o *opening) over() {
	if o != nil {
		o.timer.Stop()
		o.cancel(nil)
	}
}
