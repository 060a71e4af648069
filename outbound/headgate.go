package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/shed"
)

const (
	reasonField  = "Headgate-Reason"
	retriedField = "Headgate-Retried"
)

// ParseReason reads a Headgate-Reason. Text that is not on the closed list yields
// Admitted and false.
func ParseReason(s string) (shed.Reason, bool) {
	if len(s) > maxValue {
		return shed.Admitted, false
	}
	for r := range shed.Reason(shed.ReasonCount) {
		if r.String() == s {
			return r, true
		}
	}
	return shed.Admitted, false
}

// headgateVerdict judges a refusal by a Headgate gate. A gate's 503 is about the
// whole service, and its callers stand back from all of it; its 429 is about one
// caller's rate for one operation.
func headgateVerdict(resp *http.Response) (Verdict, bool) {
	s := first(resp.Header, reasonField)
	if s == "" {
		return Verdict{}, false
	}
	r, ok := ParseReason(s)
	if !ok || !r.Refused() {
		return Verdict{}, false
	}
	v := reasonVerdicts[r]
	v.Reason = r
	return v, true
}

var reasonVerdicts = [shed.ReasonCount]Verdict{
	shed.Unidentified:       {Kind: Permanent},
	shed.RateLimited:        {Kind: Throttled},
	shed.NotAdmissible:      {Kind: Permanent},
	shed.LimiterUnavailable: {Kind: Overloaded, Scope: ScopeService},
	shed.RouteCap:           {Kind: Overloaded},
	shed.CallerCap:          {Kind: Throttled, Scope: ScopeService},
	shed.StreamCap:          {Kind: Overloaded},
	shed.Capacity:           {Kind: Overloaded, Scope: ScopeService},
	shed.QueueFull:          {Kind: Overloaded, Scope: ScopeService},
	shed.PredictedWait:      {Kind: Overloaded, Scope: ScopeService},
	shed.QueueBytes:         {Kind: Overloaded, Scope: ScopeService},
	shed.WaitedTooLong:      {Kind: Overloaded, Scope: ScopeService},
	// The deadline this call brings is too short for the queue there, and the
	// next attempt would bring a shorter one.
	shed.DeadlineUnmeetable: {Kind: Overloaded, Scope: ScopeService, Final: true},
	shed.Evicted:            {Kind: Overloaded, Scope: ScopeService},
	shed.Pressure:           {Kind: Overloaded, Scope: ScopeService},
	// The server saw us leave; whatever went wrong is on the way.
	shed.ClientGone: {Kind: Transient},
	// One process leaves, its siblings are well: ask again, at the same pace.
	shed.Draining: {Kind: Transient},
}

// Relay passes a refusal met on the way, given as the end of a call (resp or err), on
// to the caller in front: it writes the reason and the hint into h, and marks it as
// retried already. A client that finds the mark slows down but does not retry, so
// that one refusal deep in a chain of services is retried in one place, not once per
// hop. It sets no status; 503 is the one that fits. It returns false, and writes
// nothing, when the call was not refused for the sake of pace.
func Relay(h http.Header, resp *http.Response, err error) bool {
	var local *Refusal
	switch {
	case resp != nil && Classify(resp, nil).Refused():
		for _, field := range [...]string{reasonField, "Retry-After"} {
			if s := first(resp.Header, field); s != "" {
				h[field] = []string{s}
			}
		}
	case errors.As(err, &local) && IsThrottle(err):
		if local.Wait > 0 {
			seconds := (local.Wait + time.Second - 1) / time.Second
			h["Retry-After"] = []string{strconv.FormatInt(int64(seconds), 10)}
		}
	default:
		return false
	}
	h[retriedField] = []string{"1"}
	return true
}

func relayed(h http.Header) bool { return first(h, retriedField) != "" }
