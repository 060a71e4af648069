package outbound

import (
	"errors"
	"net/http"
)

// Breaker hooks a circuit breaker in, whichever library it is of. Execute is what
// runs a call and may refuse to: the method value fits sony/gobreaker and
// failsafe-go as it is.
//
//	cb := gobreaker.NewCircuitBreaker[*http.Response](gobreaker.Settings{
//		IsSuccessful: outbound.IsSuccessful,
//		IsExcluded:   outbound.IsExcluded,
//	})
//	outbound.Breaker{Execute: cb.Execute}
//
//	cb := circuitbreaker.NewBuilder[*http.Response]().HandleIf(outbound.IsFailure).Build()
//	outbound.Breaker{Execute: failsafe.With(cb).Get}
//
// A throttle never counts as a failure: the server is well, and says so. When the
// breaker refuses, the caller gets a [*Refusal] with BreakerOpen around the
// breaker's own error. The zero Breaker is none.
type Breaker struct {
	Execute func(call func() (*http.Response, error)) (*http.Response, error)

	// HalfOpen, if set, tells whether the breaker is half-open. Throttles and
	// overloads are then left out of the count in the other states, by an error
	// for which IsExcluded is true, so that they do not hide a row of failures. In
	// the half-open state they count as answered, or a breaker that hears nothing
	// else would never close. If nil, they count as answered in every state. Set it
	// only for a breaker that is given IsExcluded.
	HalfOpen func() bool

	// CountOverload makes an overload (503, 529) count as a failure.
	CountOverload bool
}

// IsSuccessful reports whether err, as a call under a [Breaker] returns it, is no
// reason to open the circuit: nil, or anything but a fault of the server. It fits
// gobreaker's Settings.IsSuccessful.
func IsSuccessful(err error) bool { return !IsFailure(nil, err) }

// IsExcluded reports whether err says nothing about the server at all: the call was
// cancelled or never sent, or was a throttle to be left out of the count. It fits
// gobreaker's Settings.IsExcluded.
func IsExcluded(err error) bool {
	if err == nil {
		return false
	}
	switch v := verdictOf(err); v.Kind {
	case Canceled, LocalRefusal, Throttled, QuotaExhausted:
		return true
	case Overloaded:
		return !countsAsFailure(err)
	}
	return false
}

// IsFailure reports whether an attempt ended in a fault of the server. It fits
// failsafe-go's HandleIf. Under a [Breaker] the error says it all; with resp alone
// it judges resp by the built-in table.
func IsFailure(resp *http.Response, err error) bool {
	if err != nil {
		return verdictOf(err).Kind == Transient || countsAsFailure(err)
	}
	return resp != nil && Classify(resp, nil).Kind == Transient
}

// failure marks an overload that counts.
type failure struct{ err *Error }

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

func countsAsFailure(err error) bool {
	var f failure
	return errors.As(err, &f)
}

// broken is the RoundTripper around a Breaker.
type broken struct {
	breaker func(*http.Request) Breaker
	judge   judge
	next    http.RoundTripper
}

// Break returns a RoundTripper that runs each attempt under the Breaker that choose
// returns for its request. Nil next means http.DefaultTransport. Classifiers are
// asked before the built-in table.
func Break(next http.RoundTripper, choose func(*http.Request) Breaker, classify ...Classifier) http.RoundTripper {
	return &broken{breaker: choose, judge: classify, next: orDefault(next)}
}

// RoundTrip runs the attempt under the breaker.
func (t *broken) RoundTrip(req *http.Request) (*http.Response, error) {
	b := t.breaker(req)
	if b.Execute == nil {
		return t.next.RoundTrip(req)
	}
	r := &run{t: t, b: b, req: req}
	_, refusal := b.Execute(r.attempt)
	if !r.ran {
		closeBody(req)
		return nil, &Refusal{Why: BreakerOpen, Err: refusal}
	}
	return r.resp, r.err
}

// run is one attempt under a breaker. What came of it is kept here, because what the
// breaker is told is not what the caller gets.
type run struct {
	t    *broken
	b    Breaker
	req  *http.Request
	ran  bool
	resp *http.Response
	err  error
}

func (r *run) attempt() (*http.Response, error) {
	r.ran = true
	r.resp, r.err = r.t.next.RoundTrip(r.req)
	return r.resp, r.b.report(r.t.judge.verdict(r.resp, r.err), r.resp, r.err)
}

// report is what the breaker is told of an attempt's end: nil when the server
// answered, an [*Error] otherwise.
func (b Breaker) report(v Verdict, resp *http.Response, err error) error {
	switch v.Kind {
	case OK, Conflict, Permanent:
		return nil
	case Throttled, QuotaExhausted:
		if b.answers() {
			return nil
		}
	case Overloaded:
		if b.CountOverload {
			return failure{newError(v, resp, err)}
		}
		if b.answers() {
			return nil
		}
	}
	return newError(v, resp, err)
}

// answers reports whether a throttle counts as an answer in the breaker's state.
func (b Breaker) answers() bool { return b.HalfOpen == nil || b.HalfOpen() }
