package outbound

import (
	"net/http"
)

// classifyResponse judges a response of status 400 or above. Vendors come first,
// because their answers often contradict the status: a throttle with 400, a spent
// quota with 429.
func classifyResponse(resp *http.Response) Verdict {
	v, ok := headgateVerdict(resp)
	if !ok {
		v = vendorVerdict(resp)
	}
	return shouldRetry(resp.Header, completed(resp, v))
}

// slowDown reports whether a verdict of kind k asks for less, so that a hint in the
// header is about it.
func slowDown(k Kind) bool { return k == Throttled || k == Overloaded || k == QuotaExhausted }

// kindOfStatus is what a status means when nothing else is known.
func kindOfStatus(status int) Kind {
	switch status {
	case http.StatusTooManyRequests:
		return Throttled
	case http.StatusServiceUnavailable, statusSiteOverloaded:
		return Overloaded
	case http.StatusRequestTimeout, http.StatusTooEarly,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
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

const statusSiteOverloaded = 529

// shouldRetry lets a server that says outright whether to retry have the last word
// on that; what it means for the pace stays.
func shouldRetry(h http.Header, v Verdict) Verdict {
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
func pushedBack(h http.Header) bool {
	s := first(h, "Grpc-Retry-Pushback-Ms")
	if s == "" {
		return false
	}
	_, ok := parseMilliseconds(s)
	return !ok
}

// first returns the first line of a field given in canonical form, without the
// work of making it so.
func first(h http.Header, field string) string {
	if lines := h[field]; len(lines) > 0 && len(lines[0]) <= maxValue {
		return lines[0]
	}
	return ""
}
