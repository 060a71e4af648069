package admission_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/ratelimit/window"
	"github.com/headgate-go/headgate/shed"
)

// wanted is the estimate that a client announces.
func wanted(r *http.Request) int {
	n, _ := strconv.Atoi(r.Header.Get("X-Tokens"))
	return n
}

// prompt sends a request that announces so many tokens.
func prompt(h http.Handler, path, tokens string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("X-Tokens", tokens)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// sold is ten requests and a thousand tokens, which never come back.
func sold() ratelimit.Limiter {
	return ratelimit.All(
		ratelimit.PerKey(0, 10, ratelimit.Name("requests")),
		ratelimit.Counting("tokens", ratelimit.PerKey(0, 1000, ratelimit.Name("tokens"))),
	)
}

func chat(opts admission.Options, more ...admission.RouteOption) admission.Options {
	opts.Routes = map[string]admission.Rule{
		"/chat": admission.AtLevel(priority.Normal, append(more, admission.CostIn("tokens", wanted))...),
	}
	return opts
}

func TestARequestIsChargedInItsUnits(t *testing.T) {
	for name, opts := range map[string]admission.Options{
		"one limit":   chat(admission.Options{Rate: sold()}),
		"rate, quota": chat(admission.Options{Rate: ratelimit.PerKey(0, 10, ratelimit.Name("requests")), Quota: ratelimit.Counting("tokens", ratelimit.PerKey(0, 1000, ratelimit.Name("tokens")))}),
		"the route's": chat(admission.Options{Rate: ratelimit.PerKey(0, 10, ratelimit.Name("requests"))}, admission.Rate(ratelimit.Counting("tokens", ratelimit.PerKey(0, 1000, ratelimit.Name("tokens"))))),
		"in a scope":  chat(admission.Options{Rate: ratelimit.Scoped("api", sold())}),
		"in windows":  chat(admission.Options{Rate: ratelimit.All(ratelimit.PerKey(0, 10, ratelimit.Name("requests")), ratelimit.Counting("tokens", window.MustNew(window.Options{Quota: 1000, Length: 24 * 3600e9, Name: "tokens"})))}),
	} {
		opts.HTTP.RateLimitHeaders = admission.IETFDraft11
		h := admission.MustNew(opts).Handler(okHandler())
		w := prompt(h, "/chat", "700")
		if w.Code != 200 || !strings.Contains(w.Header().Get("RateLimit-Policy"), `tokens";q=1000;qu="tokens"`) || !strings.Contains(w.Header().Get("RateLimit"), `tokens";r=300`) {
			t.Errorf("%s: %d, %v", name, w.Code, w.Header())
		}
		if w = prompt(h, "/chat", "301"); w.Code != 429 || !strings.Contains(w.Body.String(), "tokens") {
			t.Errorf("%s: 301 of 300 tokens: %d %s", name, w.Code, w.Body)
		}
		if w = prompt(h, "/chat", "300"); w.Code != 200 {
			t.Errorf("%s: the refusal took something: %d", name, w.Code)
		}
		if w = prompt(h, "/chat", "-1"); w.Code != 429 {
			t.Errorf("%s: an estimate below nothing passes where none are left", name)
		}
		for i := range 8 { // two of ten are gone
			if w = prompt(h, "/other", ""); w.Code != 200 {
				t.Errorf("%s: request %d of a route without tokens: %d", name, i, w.Code)
			}
		}
		if w = prompt(h, "/other", ""); w.Code != 429 {
			t.Errorf("%s: the eleventh request: %d", name, w.Code)
		}
	}
}

func TestAUnitIsSettledOnceAndByItself(t *testing.T) {
	for after, want := range map[int]int{100: 10, 50: 19, 250: 4, 0: 901, -7: 901, math.MinInt: 901, math.MaxInt: 1} {
		opts := chat(admission.Options{Rate: ratelimit.Counting("tokens", ratelimit.PerKey(0, 1000))})
		h := admission.MustNew(opts).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if admission.ChargeIn(r.Context(), "rows", 5) || admission.ChargeIn(r.Context(), "", 5) {
				t.Error("charged in a unit that the route does not name")
			}
			if !admission.ChargeIn(r.Context(), "tokens", after) || admission.ChargeIn(r.Context(), "tokens", after) {
				t.Error("not charged once")
			}
			if !admission.Charge(r.Context(), 3) {
				t.Error("the cost is not settled apart from the unit")
			}
		}))
		got := 0
		for range 901 {
			if prompt(h, "/chat", "100").Code == 200 {
				got++
			}
		}
		if got != want {
			t.Errorf("100 announced, %d taken: %d passed, want %d", after, got, want)
		}
	}
}

// A limit that takes nothing from a request has no balance to tell it.
func TestARequestWithoutTheUnitHearsNothingOfItsLimit(t *testing.T) {
	tokens := ratelimit.Counting("tokens", ratelimit.PerKey(0, 1000, ratelimit.Name("tokens")))
	for name, l := range map[string]ratelimit.Limiter{
		"alone": tokens, "of two": ratelimit.All(tokens, ratelimit.Counting("rows", ratelimit.PerKey(0, 5))),
		"in a scope": ratelimit.Scoped("api", tokens), "in shadow": ratelimit.Shadow(tokens),
	} {
		opts := chat(admission.Options{Rate: l})
		opts.HTTP.RateLimitHeaders = admission.IETFDraft11 | admission.XRateLimit
		h := admission.MustNew(opts).Handler(okHandler())
		prompt(h, "/chat", "1000")
		for field, is := range prompt(h, "/other", "").Header() {
			if strings.Contains(strings.ToLower(field), "ratelimit") {
				t.Errorf("%s: none is left, and %s: %v", name, field, is)
			}
		}
	}
}

func TestATicketNamesUnits(t *testing.T) {
	g := admission.MustNew(admission.Options{Rate: sold()})
	ticket := admission.Ticket{Caller: caller.Caller{Key: "a", Verified: true}, Units: map[string]int{"tokens": 400, "rows": 1, "": 3}}
	for i, take := range []int{100, 900} {
		p, err := g.Admit(context.Background(), ticket)
		if err != nil {
			t.Fatal(i, err)
		}
		if !p.ChargeIn("tokens", take) || p.ChargeIn("tokens", take) || p.ChargeIn("bytes", 1) {
			t.Error("not charged once")
		}
		p.Release(shed.Served)
		if p.ChargeIn("tokens", take) || (admission.Permit{}).ChargeIn("tokens", 1) {
			t.Error("charged after the end")
		}
	}
	if _, err := g.Admit(context.Background(), ticket); err == nil || !strings.Contains(err.Error(), `"tokens"`) {
		t.Errorf("1,000 are gone: %v", err)
	}
}

func TestARefusalForCapacityGivesTheQuotaOfAUnitBack(t *testing.T) {
	g := admission.MustNew(chat(admission.Options{
		Quota: ratelimit.Counting("tokens", ratelimit.PerKey(0, 1000)),
		Pool:  admission.Pool{Limit: shed.Fixed(1), MaxWait: admission.NoWait},
	}))
	p, err := g.Admit(context.Background(), admission.Ticket{})
	if err != nil {
		t.Fatal(err)
	}
	h := g.Handler(okHandler())
	for range 5 {
		if w := prompt(h, "/chat", "900"); w.Code != 503 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	p.Release(shed.Served)
	if w := prompt(h, "/chat", "900"); w.Code != 200 {
		t.Errorf("the tokens of refused work are kept: %d %s", w.Code, w.Body)
	}
}

// A path that a router may read in two ways pays the most that either rule asks, in
// every unit.
func TestAnAmbiguousPathPaysTheMostInEachUnit(t *testing.T) {
	of := func(n int) func(*http.Request) int { return func(*http.Request) int { return n } }
	h := admission.MustNew(admission.Options{
		Rate: ratelimit.Counting("tokens", ratelimit.PerKey(0, 1000)),
		Routes: map[string]admission.Rule{
			"/a/": admission.AtLevel(priority.Normal, admission.CostIn("tokens", of(600))),
			"/b":  admission.AtLevel(priority.Normal, admission.CostIn("tokens", of(10))),
		},
	}).Handler(okHandler())
	r := httptest.NewRequest(http.MethodGet, "/a/..%2fb", nil)
	for i, want := range []int{200, 429} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("request %d: %d, want %d", i, w.Code, want)
		}
	}
}

func TestWrongUnitsAreToldAtSetUp(t *testing.T) {
	of := func(*http.Request) int { return 1 }
	tokens := ratelimit.Counting("tokens", ratelimit.PerKey(1, 1))
	for want, opts := range map[string][]admission.RouteOption{
		`CostIn("rows"): no limit counts it`:    {admission.CostIn("rows", of)},
		`CostIn("tokens") is given twice`:       {admission.CostIn("tokens", of), admission.CostIn("tokens", of)},
		`CostIn(""): a route names up to four`:  {admission.CostIn("", of)},
		`CostIn("e"): a route names up to four`: {admission.CostIn("a", of), admission.CostIn("b", of), admission.CostIn("c", of), admission.CostIn("d", of), admission.CostIn("e", of)},
		`Exempt excludes every other`:           {admission.Exempt(), admission.CostIn("tokens", of)},
	} {
		_, err := admission.New(admission.Options{Rate: tokens, Routes: map[string]admission.Rule{"/x": admission.AtLevel(priority.Normal, opts...)}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `Options.Routes["/x"]`) {
			t.Errorf("error = %v, want one that says %s", err, want)
		}
	}
	mustPanic(t, `CostIn("rows"): no limit counts it`, func() {
		admission.MustNew(admission.Options{Rate: tokens}).At(priority.Normal, admission.CostIn("rows", of))
	})
	mustPanic(t, `CostIn("rows", nil)`, func() { admission.CostIn("rows", nil) })

	g := admission.MustNew(admission.Options{Rate: tokens})
	g.At(priority.Normal, admission.CostIn("tokens", of))
	if err := g.Update(admission.Options{Rate: ratelimit.PerKey(1, 1)}); err == nil || !strings.Contains(err.Error(), "tokens") {
		t.Errorf("a reload drops the limit of a unit that a route names: %v", err)
	}
}

func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		if got, _ := recover().(string); !strings.Contains(got, want) {
			t.Errorf("panic = %q, want one that says %s", got, want)
		}
	}()
	f()
}
