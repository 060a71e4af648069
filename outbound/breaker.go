package outbound

import (
	"errors"
	"net/http"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
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
// breaker refuses, the caller gets a [*pacer.Refusal] with BreakerOpen around the
// breaker's own error. The zero Breaker is none.
type Breaker struct {
	Execute func(call func() (*http.Response, error)) (*http.Response, error)

	// HalfOpen, if set, tells whether the breaker is half-open. Throttles and
	// overloads are then left out of the count in the other states, by an error
	// for which IsExcluded is true, so that they do not hide a row of failures. In
	// the half-open state they count as answered, or a breaker that gets nothing
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
	switch Classify(nil, err).Kind {
	case verdict.Canceled, verdict.LocalRefusal, verdict.Throttled, verdict.QuotaExhausted:
		return true
	case verdict.Overloaded:
		return !countsAsFailure(err)
	}
	return false
}

// IsFailure reports whether an attempt ended in a fault of the server. It fits
// failsafe-go's HandleIf. Under a [Breaker] the error says it all; with resp alone
// it judges resp by the built-in table.
func IsFailure(resp *http.Response, err error) bool {
	if err != nil {
		return Classify(nil, err).Kind == verdict.Transient || countsAsFailure(err)
	}
	return resp != nil && Classify(resp, nil).Kind == verdict.Transient
}

// failure marks an overload that counts.
type failure struct{ err *verdict.Error }

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

func countsAsFailure(err error) bool {
	var f failure
	return errors.As(err, &f)
}

// guarded makes a charged attempt under b.
func (t *attempter) guarded(b Breaker, req *http.Request, o *pacer.Operation) (*http.Response, error) {
	r := &guardedRun{t: t, b: b, req: req, op: o}
	_, refusal := b.Execute(r.attempt)
	if !r.ran {
		closeBody(req)
		err := o.Refuse(pacer.BreakerOpen, refusal)
		t.watch.refused(o.Key(), err)
		return nil, err
	}
	return r.resp, r.err
}

// guardedRun is one attempt under a breaker. What came of it is kept here, because
// what the breaker gets is not what the caller gets.
type guardedRun struct {
	t    *attempter
	b    Breaker
	req  *http.Request
	op   *pacer.Operation
	ran  bool
	resp *http.Response
	err  error
}

func (r *guardedRun) attempt() (*http.Response, error) {
	r.ran = true
	r.resp, r.err = r.t.charged(r.req, r.op)
	return r.resp, r.b.report(r.t.judge.verdict(r.resp, r.err), r.resp, r.err)
}

// report is what the breaker gets of an attempt's end: nil when the server
// answered, a [*verdict.Error] otherwise.
func (b Breaker) report(v verdict.Verdict, resp *http.Response, err error) error {
	switch v.Kind {
	case verdict.OK, verdict.Conflict, verdict.Permanent:
		return nil
	case verdict.Throttled, verdict.QuotaExhausted:
		if b.answers() {
			return nil
		}
	case verdict.Overloaded:
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
