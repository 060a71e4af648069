package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// Check turns the end of a call into an error: nil when it was answered well, a
// [*verdict.Error] otherwise. It leaves resp.Body alone, which still has to be
// closed. Classifiers given here are asked before the built-in table.
//
//	resp, err := client.Do(req)
//	if err := outbound.Check(resp, err); err != nil { … }
func Check(resp *http.Response, err error, classify ...Classifier) error {
	v := judge(classify).verdict(resp, err)
	if v.Kind == verdict.OK {
		return nil
	}
	return newError(v, resp, err)
}

func newError(v verdict.Verdict, resp *http.Response, err error) *verdict.Error {
	e := &verdict.Error{Verdict: v, Err: err}
	if resp != nil {
		e.Status = resp.StatusCode
	}
	return e
}

// IsThrottle reports whether err is about the rate of calls: the server asked for
// less, is overloaded, or says a quota is spent, or this side held the call back for
// the sake of one. It says nothing about the thing the call was about. A job that
// cleans up after failures must ask this first, or better, ask [IsConclusive].
// A nil error is not a throttle.
func IsThrottle(err error) bool {
	if err == nil {
		return false
	}
	var local *pacer.Refusal
	if errors.As(err, &local) {
		return local.Reason != pacer.BreakerOpen && local.Reason != pacer.AttemptsSpent
	}
	return Classify(nil, err).Kind.AsksForLess()
}

// IsConclusive reports whether err is the server's answer to the question that was
// asked (not found, gone, forbidden), as opposed to a throttle, a fault, a refusal
// on this side or a cancelled call. Only a conclusive failure is a reason to delete
// something.
func IsConclusive(err error) bool { return err != nil && Classify(nil, err).Kind == verdict.Permanent }

// Relay passes a refusal met on the way, given as the end of a call (resp or err), on
// to the caller in front: it writes the reason and the hint into h, and marks it as
// retried already. A client that finds the mark slows down but does not retry, so
// that one refusal deep in a chain of services is retried in one place, not once per
// hop. It sets no status; 503 is the one that fits. It returns false, and writes
// nothing, when the call was not refused for the sake of the rate.
func Relay(h http.Header, resp *http.Response, err error) bool {
	var local *pacer.Refusal
	switch {
	case resp != nil && Classify(resp, nil).Refused():
		for _, field := range [...]string{"Headgate-Reason", "Retry-After"} {
			if lines := resp.Header[field]; len(lines) > 0 && len(lines[0]) <= mostRelayed {
				h[field] = []string{lines[0]}
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
	h["Headgate-Retried"] = []string{"1"}
	return true
}

// mostRelayed is the longest field value that is passed on, in bytes.
const mostRelayed = 128
