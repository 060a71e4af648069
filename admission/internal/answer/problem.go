package answer

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/headgate-go/headgate/shed"
)

// answer is all there is to say about a reason, rendered once.
type answer struct {
	status int
	reason string // Headgate-Reason
	text   body   // for clients that do not take JSON
	json   []byte // the problem document, without the closing brace
	whole  body   // the problem document
	latest *atomic.Pointer[named]
}

// named is a problem document that names a policy: the latest of its reason, since
// the same limit refuses again and again.
type named struct {
	policy string
	body
}

// body is a body and its Content-Length.
type body struct {
	text   []byte
	length string
}

func bodyFrom(text []byte) body { return body{text, strconv.Itoa(len(text))} }

const (
	textType    = "text/plain; charset=utf-8"
	problemType = "application/problem+json"
)

// kind is a problem type: what RFC 9457 calls type, title and status.
type kind struct {
	uri, title string
	status     int
}

// The first two are the types that draft-ietf-httpapi-ratelimit-headers asks IANA
// to register.
var (
	quotaExceeded = kind{
		"https://iana.org/assignments/http-problem-types#quota-exceeded",
		"Quota Exceeded", http.StatusTooManyRequests,
	}
	reducedCapacity = kind{
		"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
		"Temporary Reduced Capacity", http.StatusServiceUnavailable,
	}
	forbidden = kind{"about:blank", "Forbidden", http.StatusForbidden}
)

const (
	busy  = "The service is at capacity and did not start this request. "
	later = "Retry-After says when to try again."
)

// Details are for people, say what the client can do, and are the same for
// everybody: nothing about the service's inside, nothing from the request.
var answers = [shed.ReasonCount]answer{
	shed.Unidentified:       forbidden.answer(shed.Unidentified, "The service could not tell who is calling."),
	shed.RateLimited:        quotaExceeded.answer(shed.RateLimited, "More requests than this caller's limit allows. "+later),
	shed.NotAdmissible:      quotaExceeded.answer(shed.NotAdmissible, "This request is more than its limit can ever allow. Trying again will not help."),
	shed.LimiterUnavailable: reducedCapacity.answer(shed.LimiterUnavailable, "The service cannot check limits at the moment. "+later),
	shed.RouteCap:           reducedCapacity.answer(shed.RouteCap, "This operation is in use as much as it may be at once. "+later),
	shed.CallerCap:          quotaExceeded.answer(shed.CallerCap, "This caller has as many requests in progress as it may have at once. "+later),
	shed.StreamCap:          reducedCapacity.answer(shed.StreamCap, "As many streams are open as may be at once. "+later),
	shed.Capacity:           reducedCapacity.answer(shed.Capacity, busy+later),
	shed.QueueFull:          reducedCapacity.answer(shed.QueueFull, busy+later),
	shed.PredictedWait:      reducedCapacity.answer(shed.PredictedWait, busy+later),
	shed.QueueBytes:         reducedCapacity.answer(shed.QueueBytes, busy+later),
	shed.WaitedTooLong:      reducedCapacity.answer(shed.WaitedTooLong, busy+later),
	shed.DeadlineUnmeetable: reducedCapacity.answer(shed.DeadlineUnmeetable, "This request could not be finished by its deadline and was not started. "+later),
	shed.Evicted:            reducedCapacity.answer(shed.Evicted, busy+later),
	shed.Pressure:           reducedCapacity.answer(shed.Pressure, busy+later),
	shed.ClientGone:         reducedCapacity.answer(shed.ClientGone, "This request was cancelled before it was started. "+later),
	shed.Draining:           reducedCapacity.answer(shed.Draining, "This server is shutting down and did not start this request. "+later),
}

// answerTo returns what to say about a refusal. A reason that is none gets the
// answer for lack of capacity.
func answerTo(r shed.Reason) *answer {
	if int(r) >= shed.ReasonCount || answers[r].status == 0 {
		r = shed.Capacity
	}
	return &answers[r]
}

func (k kind) answer(r shed.Reason, detail string) answer {
	b := append([]byte(nil), `{"type":`...)
	b = appendJSON(b, k.uri)
	b = appendJSON(append(b, `,"title":`...), k.title)
	b = strconv.AppendInt(append(b, `,"status":`...), int64(k.status), 10)
	b = appendJSON(append(b, `,"detail":`...), detail)
	b = appendJSON(append(b, `,"reason":`...), r.String())
	return answer{
		status: k.status,
		reason: r.String(),
		text:   bodyFrom([]byte(detail + "\n")),
		json:   b[:len(b):len(b)],
		whole:  bodyFrom(append(b[:len(b):len(b)], "}\n"...)),
		latest: new(atomic.Pointer[named]),
	}
}

// problem returns the document, naming the policy where there is one.
func (a *answer) problem(policy string) *body {
	if policy == "" {
		return &a.whole
	}
	if n := a.latest.Load(); n != nil && n.policy == policy {
		return &n.body
	}
	n := &named{policy, bodyFrom(a.naming(policy))}
	a.latest.Store(n)
	return &n.body
}

func (a *answer) naming(policy string) []byte {
	const open, end = `,"violated-policies":[`, "]}\n"
	b := make([]byte, 0, len(a.json)+len(open)+len(policy)+len(`""`)+len(end))
	b = append(append(b, a.json...), open...)
	return append(appendJSON(b, policy), end...)
}

// appendJSON appends s as a JSON string.
func appendJSON(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
