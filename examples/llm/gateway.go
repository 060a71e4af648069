package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// plan is what is sold: so much a minute, of which a tenth may come at once.
type plan struct {
	requests, tokens int
	weight           int // of its callers beside others, while both wait
}

var plans = map[string]plan{
	"gold": {requests: 600, tokens: 60_000, weight: 3},
	"free": {requests: 600, tokens: 12_000, weight: 1},
}

func sold() string {
	return fmt.Sprintf("gold %d, free %d; a tenth of it at once", plans["gold"].tokens, plans["free"].tokens)
}

// tier is a plan as a limiter wants it.
func (p plan) tier(aMinute int) ratelimit.Plan {
	return ratelimit.Plan{Rate: rate.Limit(aMinute) / 60, Burst: aMinute / 10, Weight: p.weight}
}

// limits are the plans' limits on one unit.
func limits(name string, of func(plan) int) ratelimit.Limiter {
	tiers := map[string]ratelimit.Plan{}
	for plan, p := range plans {
		tiers[plan] = p.tier(of(p))
	}
	return ratelimit.Tiers(tiers["free"], tiers, ratelimit.Name(name))
}

func requests(p plan) int { return p.requests }
func tokens(p plan) int   { return p.tokens }

// unitsAndSlots is the gateway's gate. What a request may take at most is reserved at
// the door; the rest of it is given back at the end. The slot is held while the answer
// streams, since the model works for it so long.
func unitsAndSlots(next http.Handler) http.Handler {
	gate := admission.MustNew(admission.Options{
		Identify: caller.APIKey("Authorization", lookup),
		Rate:     ratelimit.All(limits("requests", requests), ratelimit.Counting("tokens", limits("tokens", tokens))),
		Pool:     admission.Pool{Limit: shed.Throughput{Max: 64}},
		HTTP:     admission.HTTP{RateLimitHeaders: admission.IETFDraft11},
	})
	estimate := func(r *http.Request) int { return asked(r).estimate() }
	return gate.At(priority.Normal, admission.CostIn("tokens", estimate))(next)
}

// requestsAlone is what stands before most models today.
func requestsAlone(next http.Handler) http.Handler {
	gate := admission.MustNew(admission.Options{
		Identify: caller.APIKey("Authorization", lookup),
		Rate:     limits("requests", requests),
		Pool:     admission.Pool{Limit: shed.Fixed(100_000)},
	})
	return gate.At(priority.Normal)(next)
}

// lookup stands for a table of keys: "Bearer gold-acme" is acme's, who bought gold.
func lookup(_ context.Context, key string) (caller.Caller, bool) {
	key = strings.TrimPrefix(key, "Bearer ")
	name, _, _ := strings.Cut(key, "-")
	_, known := plans[name]
	return caller.Caller{Key: key, Alias: key, Plan: name, Verified: known}, known
}

// newGateway proxies chats to the model behind the limit. An answer passes as it comes;
// what it took is settled when it is over, however it ends.
func newGateway(transport http.RoundTripper, model string, limit func(http.Handler) http.Handler) http.Handler {
	target, err := url.Parse(model)
	if err != nil {
		panic(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(resp *http.Response) error {
			resp.Body = &meter{ReadCloser: resp.Body, chat: asked(resp.Request), ctx: resp.Request.Context()}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			admission.ChargeIn(r.Context(), "tokens", 0) // nothing was generated
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", parsed(limit(proxy)))
	return mux
}
