package verdict

import (
	"strings"
	"time"

	"github.com/headgate-go/headgate/shed"
)

// OfAnswer judges an answer by its status and its header, whose keys are in the
// canonical form of net/http: the answers of Headgate gates, AWS, Google Cloud,
// Azure, Stripe, GitHub, Cloudflare, Discord and the LLM APIs as far as status and
// header tell, then the meaning of the status in HTTP. Vendors come first, because
// their answers often contradict the status: a throttle with 400, a spent quota
// with 429. now is for hints that are dates.
//
// A throttle is recognised only where the server said so: a bare 503 is
// [Overloaded], a bare 403 is [Permanent].
func OfAnswer(now time.Time, status int, h map[string][]string) Verdict {
	if status < 400 {
		return Verdict{}
	}
	v, ok := ofGate(h)
	if !ok {
		v = ofVendor(now, status, h)
	}
	return shouldRetry(h, Complete(now, h, v))
}

// Complete adds to a verdict what the answer's header says beside it: a hint, and
// that the call is not to be retried.
func Complete(now time.Time, h map[string][]string, v Verdict) Verdict {
	if v.Kind.AsksForLess() && !v.Hinted {
		v.Hint, v.Hinted = hint(h, now)
	}
	v.Final = v.Final || first(h, "Headgate-Retried") != "" || pushedBack(h)
	return v
}

const (
	statusForbidden       = 403
	statusConflict        = 409
	statusTooManyRequests = 429
	statusUnavailable     = 503
	statusSiteOverloaded  = 529
)

// kindOfStatus is what a status means when nothing else is known.
func kindOfStatus(status int) Kind {
	switch status {
	case statusTooManyRequests:
		return Throttled
	case statusUnavailable, statusSiteOverloaded:
		return Overloaded
	case 408, 425, 500, 502, 504: // request timeout, too early, and faults of the server or of a gateway
		return Transient
	}
	switch {
	case status < 400:
		return OK
	case status >= 520 && status <= 530: // an edge that could not reach its origin
		return Transient
	}
	return Permanent
}

// shouldRetry gives a server that says outright whether to retry the last word on
// that; what the answer means for the rate stays.
func shouldRetry(h map[string][]string, v Verdict) Verdict {
	for _, field := range [...]string{"Stripe-Should-Retry", "X-Should-Retry"} {
		switch first(h, field) {
		case "false":
			v.Final = true
		case "true":
			if v.Kind == Permanent {
				v.Kind = Conflict
			}
		}
	}
	return v
}

// pushedBack reports whether a gRPC server forbids to retry: a negative or
// malformed pushback means stop (gRPC proposal A6).
func pushedBack(h map[string][]string) bool {
	s := first(h, "Grpc-Retry-Pushback-Ms")
	if s == "" {
		return false
	}
	_, ok := parseMilliseconds(s)
	return !ok
}

// first returns the first line of a field given in canonical form, unless it is too
// long to be looked at.
func first(h map[string][]string, field string) string {
	if lines := h[field]; len(lines) > 0 && len(lines[0]) <= maxValue {
		return lines[0]
	}
	return ""
}

// parseReason reads a Headgate-Reason. Text that is not on the closed list is none.
func parseReason(s string) (shed.Reason, bool) {
	for r := range shed.Reason(shed.ReasonCount) {
		if r.String() == s {
			return r, true
		}
	}
	return shed.Admitted, false
}

// ofGate judges a refusal by a Headgate gate. A gate's 503 is about the whole
// service; its 429 is about one caller's rate for one operation.
func ofGate(h map[string][]string) (Verdict, bool) {
	s := first(h, "Headgate-Reason")
	if s == "" {
		return Verdict{}, false
	}
	r, ok := parseReason(s)
	if !ok || !r.Refused() {
		return Verdict{}, false
	}
	v := gateVerdicts[r]
	v.Reason = r
	return v, true
}

var gateVerdicts = [shed.ReasonCount]Verdict{
	shed.Unidentified:       {Kind: Permanent},
	shed.RateLimited:        {Kind: Throttled},
	shed.NotAdmissible:      {Kind: Permanent},
	shed.LimiterUnavailable: {Kind: Overloaded, ServiceWide: true},
	shed.RouteCap:           {Kind: Overloaded},
	shed.CallerCap:          {Kind: Throttled, ServiceWide: true},
	shed.StreamCap:          {Kind: Overloaded},
	shed.Capacity:           {Kind: Overloaded, ServiceWide: true},
	shed.QueueFull:          {Kind: Overloaded, ServiceWide: true},
	shed.PredictedWait:      {Kind: Overloaded, ServiceWide: true},
	shed.QueueBytes:         {Kind: Overloaded, ServiceWide: true},
	shed.WaitedTooLong:      {Kind: Overloaded, ServiceWide: true},
	// The deadline this call brings is too short for the queue there, and the
	// next attempt would bring a shorter one.
	shed.DeadlineUnmeetable: {Kind: Overloaded, ServiceWide: true, Final: true},
	shed.Evicted:            {Kind: Overloaded, ServiceWide: true},
	shed.Pressure:           {Kind: Overloaded, ServiceWide: true},
	// The server saw us leave; whatever went wrong is on the way.
	shed.ClientGone: {Kind: Transient},
	// One process leaves, its siblings are well: ask again, at the same rate.
	shed.Draining: {Kind: Transient},
}

// ofVendor judges by the headers that vendors set, then by the status.
func ofVendor(now time.Time, status int, h map[string][]string) Verdict {
	if code := awsErrorType(h); code != "" {
		if v, ok := ofCode(code); ok {
			return v
		}
	}
	if code := first(h, "X-Ms-Error-Code"); code != "" {
		if v, ok := ofAzure(status, code); ok {
			return v
		}
	}
	switch status {
	case statusForbidden:
		return forbidden(h)
	case statusTooManyRequests:
		return tooMany(now, h)
	case statusConflict:
		if first(h, "Stripe-Version") != "" { // two calls with one idempotency key at once
			return Verdict{Kind: Conflict}
		}
	}
	return Verdict{Kind: kindOfStatus(status)}
}

// awsErrorType returns the code in X-Amzn-ErrorType, which may come with a
// namespace before and an address behind: "com.amazon.x#SlowDown:http://…".
func awsErrorType(h map[string][]string) string {
	code, _, _ := strings.Cut(first(h, "X-Amzn-Errortype"), ":")
	return afterHash(code)
}

func afterHash(s string) string { return s[strings.LastIndexByte(s, '#')+1:] }

//go:generate go run ../internal/awsgen

// ofCode judges an error code of the AWS family, whatever status it came with. The
// table from the service models has no codes that all services share, nor those of
// services without a model of their errors (EC2, S3).
func ofCode(code string) (Verdict, bool) {
	if awsThrottle(code) {
		return Verdict{Kind: Throttled}, true
	}
	switch code {
	case "Throttling", "BandwidthLimitExceeded", "SlowDown", "PriorRequestNotComplete",
		"TransactionInProgressException":
		return Verdict{Kind: Throttled}, true
	case "LimitExceededException": // as often a resource quota that no rate helps with
		return Verdict{Kind: QuotaExhausted}, true
	case "RequestTimeout", "RequestTimeoutException", "InternalError", "InternalServerError":
		return Verdict{Kind: Transient}, true
	}
	return Verdict{}, false
}

func ofAzure(status int, code string) (Verdict, bool) {
	switch {
	case code == "ServerBusy", code == "TooManyRequests":
		return Verdict{Kind: Throttled}, true
	case code == "OperationTimedOut":
		return Verdict{Kind: Transient}, true
	case status == statusConflict && strings.Contains(code, "Quota"):
		return Verdict{Kind: QuotaExhausted}, true
	}
	return Verdict{}, false
}

// githubPause is what GitHub asks for when it names no time itself.
const githubPause = time.Minute

// forbidden tells a throttle sent as 403, which is how GitHub sends them, from a
// missing permission. Cloudflare puts Retry-After on refusals that are not rate
// limits, so behind it only a spent allowance counts.
func forbidden(h map[string][]string) Verdict {
	cloudflare := first(h, "Cf-Ray") != ""
	switch {
	case nothingLeft(h, "X-Ratelimit-Remaining"):
		return Verdict{Kind: Throttled, ServiceWide: true}
	case !cloudflare && first(h, "Retry-After") != "":
		return Verdict{Kind: Throttled}
	}
	return Verdict{Kind: Permanent}
}

// tooMany judges a 429: what it concerns, and GitHub's minute, which GitHub does not
// write down.
func tooMany(now time.Time, h map[string][]string) Verdict {
	v := Verdict{Kind: Throttled}
	if strings.EqualFold(first(h, "X-Ratelimit-Global"), "true") || first(h, "X-Ratelimit-Scope") == "global" {
		v.ServiceWide = true
	}
	if first(h, "X-Github-Request-Id") != "" {
		return ofGitHub(now, h)
	}
	return v
}

// ofGitHub is a throttle of GitHub's: it concerns the account, and lasts a minute if
// GitHub does not say how long.
func ofGitHub(now time.Time, h map[string][]string) Verdict {
	v := Verdict{Kind: Throttled, ServiceWide: true, Hint: githubPause, Hinted: true}
	if d, ok := hint(h, now); ok {
		v.Hint = d
	}
	return v
}
