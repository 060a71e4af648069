package outbound

import (
	"errors"
	"net/http"
	"time"

	"github.com/headgate-go/headgate/outbound/verdict"
)

// Classifier judges the end of one attempt. Exactly one of resp and err is set. It
// returns false when it cannot tell, and the next one is asked. It must not block,
// must not consume or close resp.Body (see [Peek] for a look at it), and is called
// from many goroutines.
type Classifier func(resp *http.Response, err error) (verdict.Verdict, bool)

// Classify judges the end of one attempt with the built-in table; see
// [verdict.OfAnswer] and [verdict.OfError]. It reads no body: [Bodies] does.
func Classify(resp *http.Response, err error) verdict.Verdict {
	switch {
	case err != nil:
		return ofError(err)
	case resp == nil:
		return verdict.Verdict{Kind: verdict.Transient}
	case resp.StatusCode < http.StatusBadRequest:
		return verdict.Verdict{}
	}
	return verdict.OfAnswer(time.Now(), resp.StatusCode, resp.Header)
}

// ofError adds what only net/http knows: a server that speaks another protocol, and a
// redirect to nowhere, stay so.
func ofError(err error) verdict.Verdict {
	v := verdict.OfError(err)
	var carried *verdict.Error
	if v.Kind == verdict.Transient && !errors.As(err, &carried) &&
		(errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, http.ErrNoLocation)) {
		v.Kind = verdict.Permanent
	}
	return v
}

// judge is a list of classifiers with the built-in table behind it.
type judge []Classifier

func (j judge) verdict(resp *http.Response, err error) verdict.Verdict {
	for _, c := range j {
		if v, ok := c(resp, err); ok {
			if resp != nil {
				v = verdict.Complete(time.Now(), resp.Header, v)
			}
			return v
		}
	}
	return Classify(resp, err)
}

// LocalErrors returns a Classifier for errors of this side that the table cannot
// know, such as those of a breaker or a limiter inside the Base: they are
// [verdict.LocalRefusal]s, whatever their text says.
func LocalErrors(targets ...error) Classifier {
	return func(_ *http.Response, err error) (verdict.Verdict, bool) {
		for _, target := range targets {
			if errors.Is(err, target) {
				return verdict.Verdict{Kind: verdict.LocalRefusal, Final: true}, true
			}
		}
		return verdict.Verdict{}, false
	}
}

// Bodies is a [Classifier] for the part of the table that only a look into the body
// can tell; see [verdict.OfBody]. Give it as a Classify entry for services that need
// it. What it does not recognise is left to the header and the status.
func Bodies(resp *http.Response, err error) (verdict.Verdict, bool) { return bodies(resp, err) }

var bodies = Peek(http.StatusBadRequest, func(resp *http.Response, body []byte) (verdict.Verdict, bool) {
	return verdict.OfBody(time.Now(), resp.StatusCode, resp.Header, body)
})

// GraphQL is a [Classifier] for throttles that come with status 200; see
// [verdict.OfGraphQL]. It looks into every answer.
func GraphQL(resp *http.Response, err error) (verdict.Verdict, bool) { return graphQL(resp, err) }

var graphQL = Peek(http.StatusOK, func(_ *http.Response, body []byte) (verdict.Verdict, bool) {
	return verdict.OfGraphQL(body)
})
