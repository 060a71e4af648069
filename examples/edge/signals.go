package main

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// signals judge what the end of an attempt means for the others who call the upstream,
// and whether it is tried again.
//
// An answer about one client is passed to that client and changes nothing else. What
// the upstream says of itself slows everybody down: the 503 of a gate that protects all
// of it, and any other 503 once they are a tenth of the answers. Below that it is one
// route, or one instance, in trouble.
type signals struct {
	overload bool   // 503 is heard
	throttle string // by what the upstream counts, for its 429 to be heard; none: it is the client's
	retry    string
	share    overloads
}

func newSignals(u Upstream) *signals {
	return &signals{overload: u.Signals.Overload, throttle: u.Signals.Throttle, retry: u.Retry}
}

// judge is the classifier of the transport to the upstream.
func (s *signals) judge(resp *http.Response, err error) (verdict.Verdict, bool) {
	v := outbound.Classify(resp, err)
	if err == nil {
		v = s.heard(v, resp.StatusCode)
	}
	v.Final = v.Final || !s.again(err)
	return v, true
}

// heard is v, or the verdict that nobody acts upon when v is no matter of all.
func (s *signals) heard(v verdict.Verdict, status int) verdict.Verdict {
	private := verdict.Verdict{Kind: verdict.Permanent}
	switch v.Kind {
	case verdict.Throttled, verdict.QuotaExhausted:
		s.share.answer()
		if s.throttle == throttleNone {
			return private
		}
		v.ServiceWide = false // whatever a vendor means: the operator says what is counted
		return v
	case verdict.Overloaded:
		gate := v.Reason.Refused()
		if !s.overload || status < 500 || gate && !v.ServiceWide {
			s.share.answer()
			return private
		}
		if !gate && !s.share.overload(time.Now()) {
			return private
		}
		v.ServiceWide = true
		return v
	}
	s.share.answer()
	return v
}

// again reports whether an attempt that ended in err may be followed by another.
func (s *signals) again(err error) bool {
	switch s.retry {
	case retrySafe:
		return true
	case retryUnsent:
		return unsent(err)
	}
	return false
}

// unsent reports whether err is proof that no byte was sent, for a reason that may pass
// in a moment. A name that does not exist, and a certificate that is wrong, stay so.
func unsent(err error) bool {
	var dial *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dial) && dial.Op == "dial" && !(errors.As(err, &dns) && dns.IsNotFound)
}

// overloads tells how many of the latest answers were overloads.
type overloads struct {
	answers atomic.Uint64

	mu    sync.Mutex
	since time.Time // the counts began then
	first uint64    // answers at that time
	bad   uint64    // overloads from then on
}

const (
	overloadSpan  = time.Second
	overloadFew   = 10  // answers that say nothing yet
	overloadShare = 0.1 // below: an accident
)

func (o *overloads) answer() { o.answers.Add(1) }

// overload counts an overload at now, and reports whether they are many.
func (o *overloads) overload(now time.Time) bool {
	total := o.answers.Add(1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.since) >= 2*overloadSpan {
		o.since, o.first, o.bad = now, total-1, 0
	}
	o.bad++
	seen, bad := total-o.first, o.bad
	if now.Sub(o.since) >= overloadSpan {
		o.since, o.first, o.bad = now, total, 0
	}
	return seen >= overloadFew && float64(bad) >= overloadShare*float64(seen)
}
