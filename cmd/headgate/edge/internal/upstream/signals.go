package upstream

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// Signals judge what the end of an attempt means for the others who call the upstream,
// and whether it is tried again.
//
// An answer about one client is passed to that client and changes nothing else. What
// the upstream says of itself slows everybody down: the 503 of a gate that protects all
// of it, and any other 503 once they are a tenth of the answers. Below that it is one
// route, or one instance, in trouble.
type Signals struct {
	Overload bool   // 503 is heard
	Throttle string // by what the upstream counts, for its 429 to be heard
	Retry    string

	share overloads
}

// Judge is the classifier of the transport to the upstream.
func (s *Signals) Judge(resp *http.Response, err error) (verdict.Verdict, bool) {
	v := outbound.Classify(resp, err)
	if err == nil {
		v = s.heard(v, resp.StatusCode)
	} else if ofClient(err) {
		return verdict.Verdict{Kind: verdict.Canceled, Final: true}, true
	}
	v.Final = v.Final || !s.again(err)
	return v, true
}

func ofClient(err error) bool {
	var fault *ClientFault
	return errors.As(err, &fault)
}

// heard is v, or a verdict without consequence when v concerns one client.
func (s *Signals) heard(v verdict.Verdict, status int) verdict.Verdict {
	private := verdict.Verdict{Kind: verdict.Permanent}
	switch v.Kind {
	case verdict.Throttled, verdict.QuotaExhausted:
		s.share.answer()
		if s.Throttle == ThrottleNone {
			return private
		}
		v.ServiceWide = false // whatever a vendor means: the operator says what is counted
		return v
	case verdict.Overloaded:
		gate := v.Reason.Refused()
		if !s.Overload || status < 500 || gate && !v.ServiceWide {
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
func (s *Signals) again(err error) bool {
	switch s.Retry {
	case RetrySafe:
		return true
	case RetryUnsent:
		return err != nil && unsent(err)
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
