package outbound

import (
	"net/http"
	"time"

	"github.com/headgate-go/headgate/ratelimit"
)

// listener is the throttle observer: it judges each attempt's end and tells the
// pacer.
type listener struct {
	pacer *Pacer
	key   func(*http.Request) ratelimit.Key
	judge judge
	next  http.RoundTripper
	below *paced // next, in a Transport without a breaker: it has the same key
	watch watcher
}

// Listen returns a RoundTripper that tells p what came of each request it passes to
// next, so that throttles slow everybody down who shares the key. Nil next means
// http.DefaultTransport, nil key [ByHost]. Classifiers are asked before the
// built-in table. It changes no answer and retries nothing.
func (p *Pacer) Listen(next http.RoundTripper, key func(*http.Request) ratelimit.Key, classify ...Classifier) http.RoundTripper {
	return &listener{pacer: p, key: keyOr(key), judge: classify, next: orDefault(next)}
}

// RoundTrip passes req on and listens to the answer.
func (t *listener) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, _, err := t.attempt(req, t.pacer.operation(t.key(req)))
	return resp, err
}

// attempt is RoundTrip for an operation that was looked up already, with the
// verdict.
func (t *listener) attempt(req *http.Request, o *operation) (*http.Response, Verdict, error) {
	var start time.Time
	if t.watch.on() {
		start = time.Now()
	}
	resp, err := t.pass(req, o)
	v := t.judge.verdict(resp, err)
	cut, paused := t.pacer.heard(req.Context(), o, v)
	if t.watch.on() && v.Kind != LocalRefusal {
		t.watch.answered(o.key, v, time.Since(start))
		t.watch.slowed(o, v, cut, paused)
	}
	return resp, v, err
}

func (t *listener) pass(req *http.Request, o *operation) (*http.Response, error) {
	if t.below != nil {
		return t.below.roundTrip(req, o)
	}
	return t.next.RoundTrip(req)
}
