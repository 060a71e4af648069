package admission_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// sent is a request as net/http reads it off the wire.
func sent(method, host, target string) (*http.Request, bool) {
	u, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") {
		return nil, false
	}
	r := request("GET", "/")
	r.Method, r.Host, r.URL, r.RequestURI = method, host, u, target
	return r, true
}

// A rule holds for a request however its path, its host or its method is spelled.
//
// Case LI-08: tried on the product
func TestNoSpellingEscapesARule(t *testing.T) {
	strict := func() map[string]admission.Rule {
		few := admission.Rate(ratelimit.PerKey(0, 3, ratelimit.Name("logins")))
		return map[string]admission.Rule{
			"POST /login":         admission.AtLevel(priority.High, few),
			"/static/":            admission.AtLevel(priority.Critical, admission.Exempt()),
			"/":                   admission.AtLevel(priority.Critical),
			"POST api.test/login": admission.AtLevel(priority.High, few),
		}
	}
	for _, host := range []string{"gate.test", "api.test", "API.Test", "api.test.", "api.test:80", "API.TEST.:8080"} {
		for _, method := range []string{"POST", "post", "Post"} {
			for _, target := range []string{
				"/login", "/login/", "//login", "/login//", "/./login", "/login/.", "/x/../login", "/%6cogin", "/%6Cogin/", "/login;x=1",
				"/login;", "/;y/login", "/login/;x", "/x/..;z/login", "/static/../login", "/static/%2e%2e/login", "/static/..%2flogin",
				"/static/%2e%2e%2flogin/", "/static/x/..;/../login", "/%2e/login", "/login%2f", "//login/;a=b/", "/static;x/../login",
				"/static\\..\\login", "/static/%5c..%5clogin", "/%5clogin", "//other.test/login", "///other.test/login", "/\\other.test/login", "//login/../login",
				"/%256cogin", "/static/%252e%252e/login", "/%25%36%63ogin", "/login%3fx", "/login%23", "/login%00.txt", "/static%2f..%5clogin%3f",
			} {
				g := admission.MustNew(admission.Options{Routes: strict(), Rate: ratelimit.PerKey(0, 1000), Pool: admission.Pool{Limit: shed.Fixed(10)}})
				h, served := g.Handler(okHandler()), 0
				for range 10 {
					r, ok := sent(method, host, target)
					if !ok {
						t.Fatalf("%s is no target", target)
					}
					if do(h, r).Code == http.StatusOK {
						served++
					}
				}
				if served != 3 {
					t.Errorf("%s %s%s: %d of 10 logins served, want 3", method, host, target, served)
				}
			}
		}
	}
}

// A wider rule that matches a request as it was sent gives no rights that the rule for
// what a router makes of it does not.
func TestAWiderRuleGivesNothingToASpelling(t *testing.T) {
	routes := map[string]admission.Rule{
		"/static/": admission.AtLevel(priority.Critical, admission.Exempt()),
		"/export":  admission.AtLevel(priority.Batch, admission.Cost(5)),
		"/":        admission.AtLevel(priority.Critical, admission.Cost(2)),
	}
	for _, tc := range []struct {
		target string
		level  priority.Level
		cost   int // 0: exempt
	}{
		{"/export", priority.Batch, 5},
		{"/export/", priority.Batch, 5},
		{"/static/%2e%2e/export", priority.Batch, 5},
		{"/static/..%2fexport", priority.Batch, 5},
		{"/static/..;/export", priority.Batch, 5},
		{"/static/x", priority.Critical, 0},
		{"/static/", priority.Critical, 0},
		{"/static/x/", priority.Critical, 0},
		{"/static/x;y", priority.Normal, 1},
		{"/static/%2e%2e/elsewhere", priority.Normal, 2},
		{"/elsewhere", priority.Critical, 2},
		{"/elsewhere/", priority.Critical, 2},
		{"/else%77here", priority.Normal, 2},
	} {
		r, _ := sent("GET", "gate.test", tc.target)
		if level, reason, cost := verdictOn(t, routes, r); level != tc.level || cost != tc.cost || (reason == shed.Exempt) != (tc.cost == 0) {
			t.Errorf("%s: %v %v for %d, want %v for %d", tc.target, level, reason, cost, tc.level, tc.cost)
		}
	}
}

// The letters of a path are told apart, but for rules that say they are not.
func TestLetterCaseMattersUnlessARuleSaysOtherwise(t *testing.T) {
	routes := map[string]admission.Rule{
		"POST /Login":       admission.AtLevel(priority.High, admission.Cost(5)).AnyCase(),
		"POST /users/{ID}/": admission.AtLevel(priority.High, admission.Cost(7)).AnyCase(),
		"POST /export":      admission.AtLevel(priority.High, admission.Cost(3)),
	}
	for _, tc := range []struct {
		target string
		level  priority.Level
		cost   int
	}{
		{"/Login", priority.High, 5},
		{"/login", priority.Normal, 5},
		{"/LOGIN/", priority.Normal, 5},
		{"/%4cogin", priority.Normal, 5},
		{"/users/A/b", priority.High, 7},
		{"/Users/A/b", priority.Normal, 7},
		{"/export", priority.High, 3},
		{"/Export", priority.Normal, 1},
	} {
		r, _ := sent("POST", "gate.test", tc.target)
		if level, _, cost := verdictOn(t, routes, r); level != tc.level || cost != tc.cost {
			t.Errorf("%s: %v for %d, want %v for %d", tc.target, level, cost, tc.level, tc.cost)
		}
	}
	twice := map[string]admission.Rule{"/a": admission.AtLevel(0).AnyCase(), "/A": admission.AtLevel(0).AnyCase()}
	if _, err := admission.New(admission.Options{Routes: twice}); err == nil || !strings.Contains(err.Error(), `Routes["/a"]`) {
		t.Errorf("two rules for one path: %v", err)
	}
}

// Where one request may mean several rules, the caps of all of them count it, and each
// gives it back.
func TestEveryCapOfAnAmbiguousRequestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Pool: admission.Pool{Limit: shed.Fixed(10)},
			Routes: map[string]admission.Rule{
				"/wide/":  admission.AtLevel(priority.Normal, admission.Cap(2)),
				"/narrow": admission.AtLevel(priority.Normal, admission.Cap(1)),
			},
		})
		block := newHeld()
		h := g.Handler(block)
		var wg sync.WaitGroup
		ambiguous := func() *http.Request { r, _ := sent("GET", "gate.test", "/wide/%2e%2e/narrow"); return r }
		wg.Go(func() { do(h, ambiguous()) })
		synctest.Wait()
		mustRefuse(t, do(h, request("GET", "/narrow")), 503, shed.RouteCap)
		wg.Go(func() { do(h, request("GET", "/wide/x")) })
		synctest.Wait()
		mustRefuse(t, do(h, request("GET", "/wide/x")), 503, shed.RouteCap)
		mustRefuse(t, do(h, ambiguous()), 503, shed.RouteCap)
		close(block.release)
		wg.Wait()
		for range 2 {
			for _, r := range []*http.Request{ambiguous(), request("GET", "/narrow"), request("GET", "/wide/x")} {
				if w := do(h, r); w.Code != http.StatusOK {
					t.Errorf("%s: %d after all have left", r.URL, w.Code)
				}
			}
		}
		atRest(t, g)
	})
}

// routers map the path of a request to that of the handler it reaches, or to nothing.
var routers = map[string]func(r *http.Request) string{
	"path.Clean":       func(r *http.Request) string { return path.Clean("/" + r.URL.Path) },
	"net/http":         muxPath(func(h http.Handler) http.Handler { return h }),
	"chi.StripSlashes": chiPath(middleware.StripSlashes),
	"chi.CleanPath":    chiPath(middleware.CleanPath),
	"both of chi":      chiPath(middleware.CleanPath, middleware.StripSlashes),
}

var ruledPaths = []string{"/login", "/export", "/static/", "/users/7", "/healthz"}

// ruled reports whether u is spelled plainly and has a rule of its own.
func ruled(u *url.URL) bool {
	return u.RawPath == "" && (slices.Contains(ruledPaths, u.Path) || strings.HasPrefix(u.Path, "/static/"))
}

func muxPath(wrap func(http.Handler) http.Handler) func(*http.Request) string {
	return func(r *http.Request) (reached string) {
		mux := http.NewServeMux()
		for _, p := range ruledPaths {
			mux.HandleFunc(p, func(http.ResponseWriter, *http.Request) { reached = p })
		}
		wrap(mux).ServeHTTP(httptest.NewRecorder(), r)
		return reached
	}
}

func chiPath(use ...func(http.Handler) http.Handler) func(*http.Request) string {
	return func(r *http.Request) (reached string) {
		router := chi.NewRouter()
		router.Use(use...)
		for _, p := range ruledPaths {
			pattern := p
			if strings.HasSuffix(p, "/") {
				pattern += "*"
			}
			router.HandleFunc(pattern, func(http.ResponseWriter, *http.Request) { reached = p })
		}
		router.ServeHTTP(httptest.NewRecorder(), r.Clone(r.Context()))
		return reached
	}
}

// Whatever a router behind the gate makes of a path: the caller never gets more than by
// the plain spelling of the path that it reaches.
func FuzzSpellings(f *testing.F) {
	for _, target := range []string{
		"/login", "/login/", "//login", "/x/../export", "/%65xport", "/static/%2e%2e/export", "/static/..%2Flogin", "/users/%37",
		"/users/7;x", "/healthz/.", "/static/x", "/a/..;/login", "/.//static/", "/login%2F", "/static/.%2e/login//", "/;/healthz",
	} {
		f.Add(target)
	}
	routes := map[string]admission.Rule{
		"/login":      admission.AtLevel(priority.High, admission.Cost(3)),
		"/export":     admission.AtLevel(priority.Batch, admission.Cost(5)),
		"/static/":    admission.AtLevel(priority.Critical, admission.Exempt()),
		"/users/{id}": admission.AtLevel(priority.High, admission.Cost(2)),
		"/healthz":    admission.AtLevel(priority.Critical, admission.Exempt()),
		"/":           admission.AtLevel(priority.Critical),
	}
	f.Fuzz(func(t *testing.T, target string) {
		r, ok := sent("GET", "gate.test", target)
		if !ok {
			t.Skip()
		}
		level, reason, cost := verdictOn(t, routes, r)
		for name, router := range routers {
			r, _ := sent("GET", "gate.test", target)
			plain, ok := sent("GET", "gate.test", router(r))
			if !ok || !ruled(plain.URL) {
				continue
			}
			most, mayPass, least := verdictOn(t, routes, plain)
			if level > most || cost < least || reason == shed.Exempt && mayPass != shed.Exempt {
				t.Errorf("%q: %v %v for %d, and by %s it reaches %q: %v %v for %d", target, level, reason, cost, name, plain.URL.Path, most, mayPass, least)
			}
		}
	})
}

// A rule for a tree holds for the root of the tree without its slash as well: net/http's
// mux redirects there, and other routers serve it.
func TestARuleForATreeHoldsForItsRoot(t *testing.T) {
	few := admission.Rate(ratelimit.PerKey(0, 3, ratelimit.Name("few")))
	for name, rule := range map[string]admission.Rule{
		"plain":    admission.AtLevel(priority.Critical, few),
		"any case": admission.AtLevel(priority.Critical, few).AnyCase(),
	} {
		for _, target := range []string{"/admin", "/admin/", "/%61dmin", "//admin", "/admin;x=1"} {
			for _, pattern := range []string{"/admin/", "GET /admin/", "GET gate.test/admin/{$}"} {
				g := admission.MustNew(admission.Options{Routes: map[string]admission.Rule{pattern: rule, "/": admission.AtLevel(priority.High)}})
				served, levels := 0, []priority.Level{}
				h := g.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					v, _ := admission.FromContext(r.Context())
					served, levels = served+1, append(levels, v.Level)
				}))
				for range 5 {
					r, _ := sent("GET", "gate.test", target)
					do(h, r)
				}
				if served != 3 || target == "/admin" && levels[0] != priority.Normal {
					t.Errorf("%s: %s for %s: %d served at %v, want 3", name, target, pattern, served, levels)
				}
			}
		}
	}
}

// Of several rules that a request may be meant by, the one with most slots counts.
func TestTheSlotsOfAnAmbiguousRequestAreTheMost(t *testing.T) {
	for name, wide := range map[string]admission.RouteOption{
		"Slots": admission.Slots(4), "SlotsOf": admission.SlotsOf(func(*http.Request) int { return 4 }),
	} {
		g := admission.MustNew(admission.Options{
			Routes: map[string]admission.Rule{"/export": admission.AtLevel(priority.Normal), "/export/": admission.AtLevel(priority.Normal, wide)},
			Pool:   admission.Pool{Limit: shed.Fixed(10)},
		})
		r, _ := sent("GET", "gate.test", "/export/")
		do(g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if n := g.Stats().Pools[0].InFlight; n != 4 {
				t.Errorf("%s: %d slots, want 4", name, n)
			}
		})), r)
	}
}
