package outbound

import (
	"net/http"
	"strings"
	"time"
)

// vendorVerdict judges by the headers that vendors set, then by the status.
func vendorVerdict(resp *http.Response) Verdict {
	h := resp.Header
	if code := awsErrorType(h); code != "" {
		if v, ok := codeVerdict(code); ok {
			return v
		}
	}
	if code := first(h, "X-Ms-Error-Code"); code != "" {
		if v, ok := azureVerdict(resp.StatusCode, code); ok {
			return v
		}
	}
	switch resp.StatusCode {
	case http.StatusForbidden:
		return forbidden(h)
	case http.StatusTooManyRequests:
		return tooMany(h)
	case http.StatusConflict:
		if first(h, "Stripe-Version") != "" { // two calls with one idempotency key at once
			return Verdict{Kind: Conflict}
		}
	}
	return Verdict{Kind: kindOfStatus(resp.StatusCode)}
}

// awsErrorType returns the code in X-Amzn-ErrorType, which may come with a
// namespace before and an address behind: "com.amazon.x#SlowDown:http://…".
func awsErrorType(h http.Header) string {
	code, _, _ := strings.Cut(first(h, "X-Amzn-Errortype"), ":")
	if i := strings.LastIndexByte(code, '#'); i >= 0 {
		code = code[i+1:]
	}
	return code
}

// codeVerdict judges an error code of the AWS family, whatever status it came with.
func codeVerdict(code string) (Verdict, bool) {
	switch code {
	case "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled",
		"RequestThrottledException", "TooManyRequestsException",
		"ProvisionedThroughputExceededException", "RequestLimitExceeded",
		"BandwidthLimitExceeded", "SlowDown", "EC2ThrottledException",
		"PriorRequestNotComplete", "TransactionInProgressException":
		return Verdict{Kind: Throttled}, true
	case "LimitExceededException": // as often a resource quota that no pace helps with
		return Verdict{Kind: QuotaExhausted}, true
	case "RequestTimeout", "RequestTimeoutException", "InternalError", "InternalServerError":
		return Verdict{Kind: Transient}, true
	}
	return Verdict{}, false
}

func azureVerdict(status int, code string) (Verdict, bool) {
	switch {
	case code == "ServerBusy", code == "TooManyRequests":
		return Verdict{Kind: Throttled}, true
	case code == "OperationTimedOut":
		return Verdict{Kind: Transient}, true
	case status == http.StatusConflict && strings.Contains(code, "Quota"):
		return Verdict{Kind: QuotaExhausted}, true
	}
	return Verdict{}, false
}

// githubPause is what GitHub asks for when it names no time itself.
const githubPause = time.Minute

// forbidden tells a throttle in the clothes of a 403, as GitHub sends them, from a
// missing permission. Cloudflare puts Retry-After on refusals that are not rate
// limits, so behind it only a spent allowance counts.
func forbidden(h http.Header) Verdict {
	cloudflare := first(h, "Cf-Ray") != ""
	switch {
	case nothingLeft(h, "X-Ratelimit-Remaining"):
		return Verdict{Kind: Throttled, Scope: ScopeService}
	case !cloudflare && first(h, "Retry-After") != "":
		return Verdict{Kind: Throttled}
	}
	return Verdict{Kind: Permanent}
}

// tooMany judges a 429: whom it concerns, and GitHub's unwritten minute.
func tooMany(h http.Header) Verdict {
	v := Verdict{Kind: Throttled}
	if strings.EqualFold(first(h, "X-Ratelimit-Global"), "true") || first(h, "X-Ratelimit-Scope") == "global" {
		v.Scope = ScopeService
	}
	if first(h, "X-Github-Request-Id") != "" {
		return githubLimit(h)
	}
	return v
}

// githubLimit is a throttle of GitHub's: it concerns the account, and lasts a minute
// if GitHub does not say how long.
func githubLimit(h http.Header) Verdict {
	v := Verdict{Kind: Throttled, Scope: ScopeService, Hint: githubPause, Hinted: true}
	if d, ok := Hint(h, time.Now()); ok {
		v.Hint = d
	}
	return v
}
