package admission_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// violated returns the policies that a problem document names.
func violated(t *testing.T, w *httptest.ResponseRecorder) []string {
	t.Helper()
	var doc struct {
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Errorf("body %q: %v", w.Body, err)
	}
	return doc.Violated
}

// threeLimits is a tenant's, a global one and a route's, with bursts of the given
// numbers, refilled in 10, 20 and 30 s a token.
func threeLimits(tenant, global, route int) (*admission.Gate, http.Handler) {
	g := admission.MustNew(admission.Options{
		Identify: caller.Header("X-Tenant"), HTTP: admission.HTTP{RateLimitHeaders: bothSets}, Pool: admission.Pool{Limit: shed.Fixed(10)},
		Rate: ratelimit.All(
			ratelimit.PerKey(rate.Every(10*time.Second), tenant, ratelimit.Name("tenant")),
			ratelimit.Global(rate.Every(20*time.Second), global),
		),
	})
	return g, g.At(priority.Normal, admission.Rate(
		ratelimit.PerKey(rate.Every(30*time.Second), route, ratelimit.Name("route"))))(okHandler())
}

func TestRefusalDescribesTheLimitThatRefused(t *testing.T) {
	for _, tc := range []struct {
		tenant, global, route int
		name, policy, limit   string
		after                 int
	}{
		{1, 5, 5, "tenant", `"tenant";q=1;w=10`, `"tenant";r=0;t=10`, 10},
		{5, 1, 5, "global", `"global";q=1;w=20`, `"global";r=0;t=20`, 20},
		{5, 5, 1, "route", `"route";q=1;w=30`, `"route";r=0;t=30`, 30},
		{1, 1, 5, "global", `"global";q=1;w=20`, `"global";r=0;t=20`, 20}, // the longest of several
		{1, 1, 1, "route", `"route";q=1;w=30`, `"route";r=0;t=30`, 30},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, h := threeLimits(tc.tenant, tc.global, tc.route)
			if w := do(h, request("GET", "/", "X-Tenant", "a")); w.Code != 200 {
				t.Fatalf("first: %d", w.Code)
			}
			w := do(h, request("GET", "/", "X-Tenant", "a"))
			mustRefuse(t, w, 429, shed.RateLimited)
			if got := violated(t, w); !slices.Equal(got, []string{tc.name}) {
				t.Errorf("%s: violated %q", tc.name, got)
			}
			if got := w.Header().Get("RateLimit-Policy"); got != tc.policy {
				t.Errorf("%s: RateLimit-Policy %s, want %s", tc.name, got, tc.policy)
			}
			if got := w.Header().Get("RateLimit"); got != tc.limit {
				t.Errorf("%s: RateLimit %s, want %s", tc.name, got, tc.limit)
			}
			if got := seconds(t, w.Header(), "Retry-After"); got != tc.after {
				t.Errorf("%s: Retry-After %d, want %d", tc.name, got, tc.after)
			}
			time.Sleep(time.Duration(tc.after) * time.Second) // fake
			if w := do(h, request("GET", "/", "X-Tenant", "a")); w.Code != 200 {
				t.Errorf("%s: advice followed exactly: %d", tc.name, w.Code)
			}
		})
	}
}

func TestAnswersDescribeTheLimitNearestExhaustion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, h := threeLimits(9, 5, 7)
		w := do(h, request("GET", "/", "X-Tenant", "a"))
		if got := w.Header().Get("RateLimit"); got != `"global";r=4;t=20` {
			t.Errorf("RateLimit %s", got)
		}
		if x := w.Header().Get("X-RateLimit-Limit") + " " + w.Header().Get("X-RateLimit-Remaining"); x != "5 4" {
			t.Errorf("X-RateLimit %s", x)
		}
	})
}

// A refusal for capacity tells what is left of the rate, but no policy was violated.
func TestRefusalForCapacityNamesNoPolicy(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Pool: admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait}, HTTP: admission.HTTP{RateLimitHeaders: bothSets}, Rate: ratelimit.PerKey(0, 5),
	})
	p, err := g.Admit(context.Background(), admission.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release(shed.Served)
	w := get(g.Handler(okHandler()))
	mustRefuse(t, w, 503, shed.Capacity)
	if got := violated(t, w); got != nil {
		t.Errorf("violated %q", got)
	}
	if left := seconds(t, w.Header(), "X-RateLimit-Remaining"); left != 4 {
		t.Errorf("%d left, want 4: the attempt counts", left)
	}
}

func TestAddressLimitSpeaksForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Identify: caller.Header("X-Tenant"), HTTP: admission.HTTP{RateLimitHeaders: bothSets}, Rate: ratelimit.PerKey(1, 100),
			Address: ratelimit.TiersFunc(ratelimit.Plan{Rate: 1, Burst: 50}, func(k ratelimit.Key) ratelimit.Plan {
				if k.Space == "addr" && k.ID == "192.0.2.1" {
					return ratelimit.Plan{Rate: 0.5, Burst: 1}
				}
				return ratelimit.Plan{}
			}, ratelimit.Name("address")),
		})
		h := g.Handler(okHandler())
		w := do(h, request("GET", "/", "X-Tenant", "a"))
		if got := w.Header().Get("RateLimit"); got != `"address";r=0;t=2` || w.Code != 200 {
			t.Errorf("%d, RateLimit %s", w.Code, got)
		}
		if got := w.Header().Get("RateLimit-Policy"); got != `"address";q=1;w=2` {
			t.Errorf("RateLimit-Policy %s: the numbers are the address', not the tenant's", got)
		}
		w = do(h, request("GET", "/", "X-Tenant", "a"))
		mustRefuse(t, w, 429, shed.RateLimited)
		if got := violated(t, w); !slices.Equal(got, []string{"address"}) {
			t.Errorf("violated %q", got)
		}
	})
}

func TestUnlimitedPlanIsToldNothing(t *testing.T) {
	g := admission.MustNew(admission.Options{
		Identify: planned, HTTP: admission.HTTP{RateLimitHeaders: bothSets},
		Rate: ratelimit.Tiers(ratelimit.Plan{Rate: 1, Burst: 5}, map[string]ratelimit.Plan{"internal": {Allow: ratelimit.AllowEverything}}),
	})
	h := g.Handler(okHandler())
	if w := do(h, request("GET", "/", "X-Key", "a/internal")); len(rateFields(w.Header())) != 0 {
		t.Errorf("unlimited, and told %v", rateFields(w.Header()))
	}
	if w := do(h, request("GET", "/", "X-Key", "a/")); len(rateFields(w.Header())) != 5 {
		t.Errorf("limited, and told %v", rateFields(w.Header()))
	}
}

// rateFields are the header's fields about limits.
func rateFields(h http.Header) (names []string) {
	for name := range h {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			names = append(names, name)
		}
	}
	return names
}

// askedLimit counts how it is asked.
type askedLimit struct {
	ratelimit.Limiter
	taken, peeked int
}

func (l *askedLimit) Take(ctx context.Context, now time.Time, k ratelimit.Key, cost int, wait time.Duration) ratelimit.Decision {
	l.taken++
	return l.Limiter.Take(ctx, now, k, cost, wait)
}

func (l *askedLimit) Peek(time.Time, ratelimit.Key, int, time.Duration) ratelimit.Decision {
	l.peeked++
	return ratelimit.Decision{OK: true}
}

// Tokens that many share are not held for a request that its own limit refused:
// somebody else would be refused for it.
func TestRefusedRequestTouchesNoFurtherLimit(t *testing.T) {
	shared := &askedLimit{Limiter: ratelimit.Unlimited}
	quota := &askedLimit{Limiter: ratelimit.Unlimited}
	g := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(0, 1), Quota: quota})
	h := g.At(priority.Normal, admission.Rate(shared))(okHandler())
	for range 10 {
		get(h)
	}
	for _, l := range []*askedLimit{shared, quota} {
		if l.taken != 1 || l.peeked != 9 {
			t.Errorf("taken %d, looked at %d times; want 1 and 9", l.taken, l.peeked)
		}
	}
}

func TestFieldsOfAnUpstreamDoNotAppearTwice(t *testing.T) {
	upstream := http.Header{"X-Ratelimit-Limit": {"1000"}, "X-Ratelimit-Remaining": {"999"}, "Ratelimit": {`"up";r=1;t=1`}, "X-Other": {"a", "b"}}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "upstream.test"}) },
		Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: upstream.Clone(), Body: http.NoBody, Request: r}, nil
		}),
	}
	silent := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Add("X-RateLimit-Limit", "1000") })
	for name, next := range map[string]http.Handler{"proxy": proxy, "handler that writes nothing": silent} {
		h := admission.MustNew(admission.Options{Rate: ratelimit.PerKey(1, 5), HTTP: admission.HTTP{RateLimitHeaders: bothSets}}).Handler(next)
		w := get(h)
		for _, field := range rateFields(w.Header()) {
			if got := w.Header()[field]; len(got) != 1 {
				t.Errorf("%s: %s = %q", name, field, got)
			}
		}
		if got := w.Header().Get("X-RateLimit-Limit"); got != "5" {
			t.Errorf("%s: limit %s, want the gate's own", name, got)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request that is told of its limit costs three allocations in all, one of several
// limits one more.
func TestHeadersCostAtMostTwoAllocations(t *testing.T) {
	for most, l := range map[float64]ratelimit.Limiter{
		2: ratelimit.PerKey(1e6, 1<<30),
		3: ratelimit.All(ratelimit.PerKey(1e6, 1<<30), ratelimit.Global(1e6, 1<<30), ratelimit.PerKey(1e6, 1<<30, ratelimit.Name("third"))),
	} {
		per := func(set admission.Headers) float64 {
			h := admission.MustNew(admission.Options{Rate: l, HTTP: admission.HTTP{RateLimitHeaders: set}}).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			r, w := request("GET", "/"), httptest.NewRecorder()
			return testing.AllocsPerRun(200, func() { h.ServeHTTP(w, r) })
		}
		bare := per(0)
		for _, set := range []admission.Headers{admission.IETFDraft11, admission.XRateLimit, bothSets} {
			if n := per(set) - bare; n > most {
				t.Errorf("set %d: %v allocations more than the %v without, at most %v", set, n, bare, most)
			}
		}
	}
}

func TestAddressesOverTheirLimitAreToldApart(t *testing.T) {
	g := admission.MustNew(admission.Options{Address: ratelimit.PerKey(1, 1)})
	h := g.Handler(okHandler())
	for range 3 {
		do(h, arriving("203.0.113.1:1"))
		do(h, arriving("203.0.113.2:1"))
	}
	if top := g.Stats().Limited; len(top) != 2 || top[0].Count != 2 || top[1].Count != 2 {
		t.Errorf("limited: %+v, want two addresses with two refusals each", top)
	}
}

// What remains is counted in tokens, of which a request takes its cost, and is that of the
// limit under which the fewest such requests may follow.
//
// Case LI-04: tried on the product
func TestRemainingIsOfTheLimitThatEndsFirst(t *testing.T) {
	for _, tc := range []struct{ address, rate, cost, remaining, follow int }{
		{4, 10, 5, 5, 1}, // 3 more by address, 1 by rate
		{2, 10, 4, 1, 1}, // 1 each
		{2, 100, 4, 1, 1},
		{9, 10, 1, 8, 8},
		{4, 10, 3, 7, 2},
	} {
		g := admission.MustNew(admission.Options{
			Address: ratelimit.PerKey(0, tc.address, ratelimit.Name("address")), Rate: ratelimit.PerKey(0, tc.rate),
			Pool: admission.Pool{Limit: shed.Fixed(10)}, HTTP: admission.HTTP{RateLimitHeaders: admission.XRateLimit},
		})
		h := g.At(priority.Normal, admission.Cost(tc.cost))(okHandler())
		if got := seconds(t, do(h, request("GET", "/")).Header(), "X-RateLimit-Remaining"); got != tc.remaining {
			t.Errorf("%+v: %d remain", tc, got)
		}
		follow := 0
		for do(h, request("GET", "/")).Code == http.StatusOK {
			follow++
		}
		if follow != tc.follow {
			t.Errorf("%+v: %d more were served", tc, follow)
		}
	}
}
