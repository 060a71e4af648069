package overhead

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/queue"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Names of the kit that are held to a figure.
const (
	kitAdmit      = "headgate/admit"
	kitWhole      = "headgate/whole"
	kitNoDeadline = "headgate/whole, no deadline"
	kitTimeout    = "headgate/whole, client's deadline"
	kitHeaders    = "headgate/whole, rate headers"
	kitNoRate     = "headgate/whole, no rate"
	kitRate       = "headgate/rate"
)

// kit is Headgate: its layers alone, then the gate with more and more of it. Whole
// is the README's quickstart.
func kit() []*subject {
	one, all := []string{admitted}, []string{admitted, refused429, refused503}
	x := []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
	both := append([]string{"Ratelimit-Policy", "Ratelimit"}, x...)
	return []*subject{
		{name: "headgate/identify", does: "the caller from its API key", bare: true, benches: one, build: newIdentify},
		{name: kitRate, does: "the token buckets", bare: true, benches: one, build: newBuckets},
		{name: "headgate/slots, fixed", does: "queue and slots", bare: true, benches: one, build: slotsUnder(func(t terms) shed.Limit { return shed.Fixed(t.slots) })},
		{name: "headgate/slots, learned", does: "queue and slots under the default law", bare: true, benches: one, build: slotsUnder(throughput)},
		{name: "headgate/metrics", does: "one event counted", bare: true, benches: one, build: newMetrics},
		{name: kitAdmit, does: "`Admit` and `Release`", bare: true, benches: all, build: newAdmit},
		{name: "headgate/handler", does: "the middleware alone", benches: all, build: handler(plain)},
		{name: "headgate/handler, rate headers", does: "with X-RateLimit headers", benches: one, headers: x, build: handler(headers)},
		{name: "headgate/handler, deadline", does: "with 5 s for each request", benches: one, build: handler(deadline)},
		{name: kitNoDeadline, does: "the middleware with metrics", benches: one, build: handler(observed)},
		{name: kitWhole, does: "the quickstart: metrics, 5 s for each request", benches: all, build: handler(observed, deadline)},
		{name: kitNoRate, does: "the middleware with metrics; no caller, no rate", benches: []string{admitted, refused503}, build: keyless(handler(observed, unlimited))},
		{name: kitTimeout, does: "whole; the client sends X-Timeout", benches: one, build: timed(handler(observed, deadline))},
		{name: kitHeaders, does: "whole with X-RateLimit headers", benches: one, headers: x, build: handler(observed, deadline, headers)},
		{name: "headgate/whole, both header sets", does: "whole with RateLimit headers too", benches: one, headers: both, build: handler(observed, deadline, bothHeaders)},
	}
}

func throughput(t terms) shed.Limit { return shed.Throughput{Max: t.slots} }

// known stands for the service's own look-up, which is not the kit's: as cheap as
// reading a header, which is all that the others do.
func known(_ context.Context, key string) (caller.Caller, bool) {
	return caller.Caller{}, strings.HasPrefix(key, "key-")
}

func newIdentify(terms) (*instance, error) {
	id := caller.APIKey(keyHeader, known)
	return &instance{ask: func(c *sender) int {
		who, err := id(c.r)
		return status(err == nil && who.Key == c.key, http.StatusForbidden)
	}}, nil
}

func newBuckets(t terms) (*instance, error) {
	l := ratelimit.PerKey(rate.Limit(t.perSecond), t.burst)
	return &instance{
		keys: func() int { return l.Stats().Keys },
		ask: func(c *sender) int {
			d := l.Take(context.Background(), time.Now(), ratelimit.Key{Space: "key", ID: c.key}, 1, 0)
			return status(d.OK, http.StatusTooManyRequests)
		},
	}, l.Validate()
}

func slotsUnder(limit func(terms) shed.Limit) func(terms) (*instance, error) {
	return func(t terms) (*instance, error) {
		s, err := queue.NewSlots(queue.Config{Limit: limit(t)})
		if err != nil {
			return nil, err
		}
		return &instance{ask: func(c *sender) int {
			g, err := s.Acquire(context.Background(), time.Now(), queue.Ticket{Level: priority.High, Caller: c.key})
			if err != nil {
				return http.StatusServiceUnavailable
			}
			s.Release(g, shed.Served)
			return http.StatusNoContent
		}}, nil
	}
}

func newMetrics(terms) (*instance, error) {
	o := metrics.New(prometheus.NewRegistry())
	o.Attach("default", func() admission.Stats { return admission.Stats{} })
	e := admission.Event{Gate: "default", Level: priority.High, Served: 3 * time.Millisecond}
	return &instance{ask: func(*sender) int {
		o.Observe(e)
		return http.StatusNoContent
	}}, nil
}

// option turns something on in the gate.
type option func(*admission.Options)

func plain(*admission.Options)                    {}
func observed(o *admission.Options)               { o.Observer = metrics.New(prometheus.NewRegistry()) }
func anyone(*http.Request) (caller.Caller, error) { return caller.Caller{Verified: true}, nil }
func unlimited(o *admission.Options)              { o.Rate, o.Identify = ratelimit.Unlimited, anyone }
func headers(o *admission.Options)                { o.HTTP.RateLimitHeaders = admission.XRateLimit }
func bothHeaders(o *admission.Options) {
	o.HTTP.RateLimitHeaders = admission.XRateLimit | admission.IETFDraft11
}
func deadline(o *admission.Options) {
	o.Deadline = admission.TimeoutHeader("X-Timeout", 5*time.Second)
}

// newGate is the quickstart's gate under the given terms. One that is to be full
// has no queue, or a refusal would take as long as its wait.
func newGate(t terms, with ...option) (*admission.Gate, *instance, error) {
	o := admission.Options{
		Identify: caller.APIKey(keyHeader, known),
		Rate:     ratelimit.PerKey(rate.Limit(t.perSecond), t.burst),
		Pool:     admission.Pool{Limit: throughput(t), MaxWait: 250 * time.Millisecond},
	}
	if t.full {
		o.Pool.MaxWait = admission.NoWait
	}
	for _, set := range with {
		set(&o)
	}
	gate, err := admission.New(o)
	if err != nil {
		return nil, nil, err
	}
	held, err := hold(gate, t)
	return gate, &instance{keys: gateKeys(gate), close: held}, err
}

func gateKeys(g *admission.Gate) func() int {
	return func() (n int) {
		for _, l := range g.Stats().Limits {
			n += l.Keys
		}
		return n
	}
}

// hold takes all slots of a gate that is to be full, under a key the callers use
// too, so that no key is added.
func hold(gate *admission.Gate, t terms) (release func(), err error) {
	var permits []admission.Permit
	for t.full && len(permits) < t.slots {
		p, err := gate.Admit(context.Background(), ticket("key-0000000"))
		if err != nil {
			return nil, err
		}
		permits = append(permits, p)
	}
	return func() {
		for _, p := range permits {
			p.Release(shed.Ignored)
		}
	}, nil
}

func ticket(key string) admission.Ticket {
	return admission.Ticket{Level: priority.High, Caller: caller.Caller{Key: key, Space: "key", Verified: true}}
}

func newAdmit(t terms) (*instance, error) {
	gate, in, err := newGate(t)
	if err != nil {
		return nil, err
	}
	in.ask = func(c *sender) int {
		p, err := gate.Admit(context.Background(), ticket(c.key))
		if err != nil {
			var rej *admission.Rejection
			errors.As(err, &rej)
			return rej.Status()
		}
		p.Release(shed.Served)
		return http.StatusNoContent
	}
	return in, nil
}

func handler(with ...option) func(terms) (*instance, error) {
	return func(t terms) (*instance, error) {
		gate, in, err := newGate(t, with...)
		if err != nil {
			return nil, err
		}
		in.ask = over(gate.At(priority.High)(served))
		return in, nil
	}
}

// keyless remembers no caller.
func keyless(build func(terms) (*instance, error)) func(terms) (*instance, error) {
	return func(t terms) (*instance, error) {
		in, err := build(t)
		if err == nil {
			in.keys = nil
		}
		return in, err
	}
}

// timed sends the client's deadline along.
func timed(build func(terms) (*instance, error)) func(terms) (*instance, error) {
	return func(t terms) (*instance, error) {
		in, err := build(t)
		if err != nil {
			return nil, err
		}
		ask := in.ask
		in.ask = func(c *sender) int {
			c.r, c.timed = c.timed, c.r
			status := ask(c)
			c.r, c.timed = c.timed, c.r
			return status
		}
		return in, nil
	}
}
