package outbound

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/priority"
)

// sender is the last part before the base: it makes the copy of the request that
// the base may do with as it likes, tells the server how much time is left and how
// much the call matters, and bounds the attempt.
type sender struct {
	base     http.RoundTripper
	timeout  time.Duration // zero: none
	resends  bool          // count what net/http sends again
	deadline string        // header fields in canonical form; empty: none
	level    string
	clocks   clocks
	tells    atomic.Bool // the base has called a trace's hook
}

// elaborate reports whether an attempt needs a context of its own.
func (t *sender) elaborate() bool { return t.timeout > 0 || t.resends }

// send sends a copy of req.
func (t *sender) send(req *http.Request, s *send) (*http.Response, error) {
	f := s.flight
	if f == nil {
		out := req.WithContext(req.Context())
		t.prepare(out, s)
		return t.base.RoundTrip(out)
	}
	f.begin(req.Context(), t)
	out := req.WithContext(f)
	t.prepare(out, s)
	resp, err := t.base.RoundTrip(out)
	return f.landed(resp, err)
}

// prepare gives out a URL and a header of its own, and the fields that speak of this attempt.
// They are set over what came in: a proxy that passes its caller's deadline on
// would promise time that is spent.
func (t *sender) prepare(out *http.Request, s *send) {
	s.url = *out.URL
	out.URL, out.Header = &s.url, out.Header.Clone()
	if out.Header == nil {
		out.Header = make(http.Header)
	}
	if t.deadline != "" {
		if left, ok := t.left(out.Context()); ok {
			s.timeout[0] = strconv.FormatInt(max(left.Milliseconds(), 1), 10)
			out.Header[t.deadline] = s.timeout[:]
		}
	}
	if t.level != "" {
		if l, ok := priority.FromContext(out.Context()); ok {
			out.Header[t.level] = []string{l.String()}
		}
	}
}

// left returns how long this attempt may take, and whether anything bounds it.
func (t *sender) left(ctx context.Context) (time.Duration, bool) {
	d, ok := ctx.Deadline()
	if !ok {
		return t.timeout, t.timeout > 0
	}
	left := time.Until(d)
	if t.timeout > 0 {
		left = min(left, t.timeout)
	}
	return left, true
}
