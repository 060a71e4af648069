package outbound

import (
	"errors"
	"fmt"
	"net/http"
)

// Error is the end of a call that did not go well, with what it means. [Check]
// makes one.
type Error struct {
	Verdict Verdict
	Status  int   // of the response, zero when there was none
	Err     error // the transport's error, nil when there was a response
}

// Error describes the failure.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("outbound: %s: %v", e.Verdict.Kind, e.Err)
	}
	return fmt.Sprintf("outbound: %s (status %d)", e.Verdict.Kind, e.Status)
}

// Unwrap returns the transport's error, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Check turns the end of a call into an error: nil when it was answered well, an
// [*Error] with the verdict otherwise. It leaves resp.Body alone, which still has
// to be closed. Classifiers given here are asked before the built-in table.
//
//	resp, err := client.Do(req)
//	if err := outbound.Check(resp, err); err != nil { … }
func Check(resp *http.Response, err error, classify ...Classifier) error {
	v := judge(classify).verdict(resp, err)
	if v.Kind == OK {
		return nil
	}
	return newError(v, resp, err)
}

func newError(v Verdict, resp *http.Response, err error) *Error {
	e := &Error{Verdict: v, Err: err}
	if resp != nil {
		e.Status = resp.StatusCode
	}
	return e
}

// IsThrottle reports whether err is about pace: the server asked for less, is
// overloaded, or says a quota is spent, or this side held the call back for the
// sake of one. It says nothing about the thing the call was about. A job that
// cleans up after failures must ask this first, or better, ask [IsConclusive].
// A nil error is not a throttle.
func IsThrottle(err error) bool {
	if err == nil {
		return false
	}
	var local *Refusal
	if errors.As(err, &local) {
		return local.Why != BreakerOpen && local.Why != AttemptsSpent
	}
	return slowDown(verdictOf(err).Kind)
}

// IsConclusive reports whether err is the server's answer to the question that was
// asked (not found, gone, forbidden), as opposed to a throttle, a fault, a refusal
// on this side or a cancelled call. Only a conclusive failure is a reason to delete
// something.
func IsConclusive(err error) bool { return err != nil && verdictOf(err).Kind == Permanent }

// verdictOf returns the verdict that err carries, or judges it.
func verdictOf(err error) Verdict {
	var e *Error
	if errors.As(err, &e) {
		return e.Verdict
	}
	return classifyError(err)
}
