package outbound

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Transport is an http.RoundTripper that keeps the calls of all who use it within
// what the other side allows. It is a stack, and the order is the point:
//
//	retrier    decides whether an attempt is followed by another
//	attempter  judges each attempt and reports it to the pacer
//	breaker    if any: sees attempts, and never a throttle as a failure
//	pacer      charges each attempt: the job's budget, a token, a slot
//	sender     own copy of the request, deadline and level as headers, time limit
//	base       http.DefaultTransport or yours
//
// Make one per service or one for all, and share it: what is not shared does not
// limit. It is safe for concurrent use. A request is never changed; its body is
// closed on every path.
type Transport struct {
	pacer   *pacer.Pacer
	key     func(*http.Request) ratelimit.Key
	retrier *retrier
	base    http.RoundTripper
}

// Options configures a Transport. It is configuration only; the zero value retries
// with a budget and holds no call back until a server asks for less.
type Options struct {
	// Name tells transports apart in metrics. Empty means "outbound".
	Name string

	// Base sends the attempts. Nil means http.DefaultTransport.
	Base http.RoundTripper

	// Key names what a request's quota counts: the service as the Space and, if
	// the quota is per operation, the operation as the ID. Nil means [ByHost].
	Key func(*http.Request) ratelimit.Key

	// Rate, MaxWait, MaxPause, Budget and MaxOperations are the pacer's; see
	// [pacer.Options]. They must be zero when Pacer is set.
	Rate          ratelimit.Limiter
	MaxWait       time.Duration
	MaxPause      time.Duration
	Budget        pacer.BudgetOptions
	MaxOperations int

	// InFlight bounds the calls in flight to each service. Nil means unbounded.
	InFlight shed.Limit

	// Pacer shares an existing one, so that several transports stay under one
	// ceiling. Nil makes one from the fields above.
	Pacer *pacer.Pacer

	// Retry says when a call is tried again.
	Retry RetryOptions

	// AttemptTimeout bounds each attempt, from when it is sent to the header of its
	// answer. Zero means only the request's context does.
	AttemptTimeout time.Duration

	// Breaker returns the circuit breaker for a request. Nil means none.
	Breaker func(*http.Request) Breaker

	// Classify is asked, in order, before the built-in table.
	Classify []Classifier

	// DeadlineHeader carries what is left of the request's deadline, in
	// milliseconds; a field of that name in the request is not passed on. Empty
	// means X-Timeout, NoHeader none.
	DeadlineHeader string

	// LevelHeader carries the level in the request's context; a field of that name
	// in the request is not passed on. Empty means none.
	LevelHeader string

	// CountResends charges what net/http sends again by itself when a kept
	// connection turns out to be dead, at the price of a few allocations per call.
	CountResends bool

	// Observer receives what happens. Nil means none.
	Observer Observer
}

// NoHeader as a DeadlineHeader means that none is sent.
const NoHeader = "-"

const (
	defaultName     = "outbound"
	defaultDeadline = "X-Timeout"
)

// New validates o and builds a Transport. Errors name the field.
func New(o Options) (*Transport, error) {
	retry, err := o.Retry.withDefaults()
	if err = errors.Join(err, o.validate()); err != nil {
		return nil, err
	}
	p, err := o.pacer()
	if err != nil {
		return nil, err
	}
	o.Name = cmp.Or(o.Name, defaultName)
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	if o.Key == nil {
		o.Key = ByHost
	}
	t := &Transport{pacer: p, key: o.Key, base: o.Base, retrier: o.retrier(retry)}
	if o.Observer != nil {
		o.Observer.Attach(o.Name, t.Stats)
	}
	return t, nil
}

// MustNew is New for set-up code: it panics on an error.
func MustNew(o Options) *Transport {
	t, err := New(o)
	if err != nil {
		panic(err)
	}
	return t
}

// retrier builds the parts, the outermost last.
func (o Options) retrier(retry RetryOptions) *retrier {
	watch := watcher{o.Observer, o.Name}
	attempts := &attempter{judge: o.Classify, watch: watch, breaker: o.Breaker, sender: &sender{
		base: o.Base, timeout: o.AttemptTimeout, resends: o.CountResends,
		deadline: header(cmp.Or(o.DeadlineHeader, defaultDeadline)), level: header(o.LevelHeader),
	}}
	return &retrier{
		opts: retry, backoff: newBackoff(retry.MinBackoff, retry.MaxBackoff), attempts: attempts, watch: watch,
	}
}

func header(name string) string {
	if name == NoHeader {
		return ""
	}
	return http.CanonicalHeaderKey(name)
}

func (o Options) pacer() (*pacer.Pacer, error) {
	if o.Pacer != nil {
		return o.Pacer, nil
	}
	return pacer.New(pacer.Options{
		Rate: o.Rate, MaxWait: o.MaxWait, MaxPause: o.MaxPause, Budget: o.Budget,
		MaxOperations: o.MaxOperations, InFlight: o.InFlight,
	})
}

func (o Options) validate() error {
	var errs []error
	if o.Pacer != nil && (o.Rate != nil || o.MaxWait != 0 || o.MaxPause != 0 || o.MaxOperations != 0 ||
		o.Budget != pacer.BudgetOptions{} || o.InFlight != nil) {
		errs = append(errs, errors.New("outbound: Pacer: set together with Rate, MaxWait, MaxPause, Budget, MaxOperations or InFlight, which are its own"))
	}
	if o.AttemptTimeout < 0 {
		errs = append(errs, fmt.Errorf("outbound: AttemptTimeout = %v: must not be negative", o.AttemptTimeout))
	}
	for i, c := range o.Classify {
		if c == nil {
			errs = append(errs, fmt.Errorf("outbound: Classify[%d]: is nil", i))
		}
	}
	return errors.Join(append(errs, fieldName("DeadlineHeader", o.DeadlineHeader), fieldName("LevelHeader", o.LevelHeader))...)
}

// fieldName reports a header name that could not be sent.
func fieldName(option, name string) error {
	const others = "!#$%&'*+-.^_`|~"
	for _, c := range name {
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && !strings.ContainsRune(others, c) {
			return fmt.Errorf("outbound: %s = %q: is not a header name", option, name)
		}
	}
	return nil
}

// RoundTrip makes a call. Besides what the base returns it returns a
// [*pacer.Refusal]
// when a call is not sent. It blocks while the call waits for its turn and between
// attempts; the request's context ends both.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.retrier.call(req, t.pacer.Operation(t.key(req)))
}

// Pacer returns the ceiling that t's callers share, for code without
// HTTP and for other transports.
func (t *Transport) Pacer() *pacer.Pacer { return t.pacer }

// Stats returns a snapshot of the numbers in force and the totals.
func (t *Transport) Stats() pacer.Stats { return t.pacer.Stats() }

// ByHost is the default key: one quota per host called, in lower case and with its
// port if the URL names one.
func ByHost(req *http.Request) ratelimit.Key {
	return ratelimit.Key{Space: strings.ToLower(req.URL.Host)}
}

// CloseIdleConnections passes on http.Client.CloseIdleConnections.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
