package admission_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// edge is a gate in front of everything, with a table of routes.
func edge(routes map[string]admission.Rule) (*admission.Gate, *recorder) {
	heard := &recorder{}
	return admission.MustNew(admission.Options{
		Routes: routes, Rate: ratelimit.PerKey(0, 1000), Pool: admission.Pool{Limit: shed.Fixed(10)}, HTTP: admission.HTTP{RateLimitHeaders: admission.XRateLimit}, Observer: heard,
	}), heard
}

// verdictOn returns how a fresh gate with the table ends the visit of one request:
// its level, its reason, and the tokens it took.
func verdictOn(t *testing.T, routes map[string]admission.Rule, r *http.Request) (priority.Level, shed.Reason, int) {
	t.Helper()
	g, heard := edge(routes)
	w := do(g.Handler(okHandler()), r)
	events := heard.all()
	if len(events) != 1 || w.Code != http.StatusOK {
		t.Fatalf("%s: %d, events %+v", r.URL, w.Code, events)
	}
	taken := 0
	if events[0].Reason != shed.Exempt {
		taken = 1000 - seconds(t, w.Header(), "X-RateLimit-Remaining")
	}
	return events[0].Level, events[0].Reason, taken
}

var shop = map[string]admission.Rule{
	"POST /checkout":  admission.AtLevel(priority.Critical),
	"GET /export":     admission.AtLevel(priority.Batch, admission.Cost(5)),
	"/files/":         admission.AtLevel(priority.High, admission.Cost(2)),
	"GET /users/{id}": admission.AtLevel(priority.High),
	"GET /healthz":    admission.AtLevel(priority.Normal, admission.Exempt()),
	"api.test/":       admission.AtLevel(priority.Batch, admission.Cost(7)),
}

func TestRoutesRankBeforeAnythingIsRouted(t *testing.T) {
	for _, tc := range []struct {
		method, target string
		level          priority.Level
		cost           int // 0: exempt
	}{
		{"POST", "/checkout", priority.Critical, 1},
		{"POST", "/checkout?debug=1", priority.Critical, 1},
		{"GET", "/checkout", priority.Normal, 1}, // another method
		{"GET", "/export", priority.Batch, 5},
		{"HEAD", "/export", priority.Batch, 5},
		{"GET", "/files/a/b", priority.High, 2},
		{"GET", "/files/", priority.High, 2},
		{"GET", "/files", priority.Normal, 2}, // some routers serve it, others redirect
		{"GET", "/users/7", priority.High, 1},
		{"GET", "/users/a%20b", priority.High, 1}, // a space has no other spelling
		{"GET", "/users/7/x", priority.Normal, 1},
		{"GET", "/healthz", priority.Normal, 0},
		{"GET", "/nowhere", priority.Normal, 1},
		{"GET", "http://api.test/nowhere", priority.Batch, 7},
	} {
		level, reason, cost := verdictOn(t, shop, request(tc.method, tc.target))
		if level != tc.level || cost != tc.cost || (reason == shed.Exempt) != (tc.cost == 0) {
			t.Errorf("%s %s: %v %v for %d, want %v for %d", tc.method, tc.target, level, reason, cost, tc.level, tc.cost)
		}
	}
}

// A respelled path is nowhere better off than the plain one, nor than Normal.
func TestRespelledPathsGainNothing(t *testing.T) {
	for _, tc := range []struct {
		method, target string
		level          priority.Level
		cost           int
	}{
		{"POST", "/%63heckout", priority.Normal, 1},
		{"POST", "//checkout", priority.Normal, 1},
		{"POST", "/./checkout", priority.Normal, 1},
		{"POST", "/x/../checkout", priority.Normal, 1},
		{"POST", "/checkout%2F", priority.Normal, 1},
		{"POST", "/checkout/.", priority.Normal, 1},
		{"GET", "/users/%37", priority.Normal, 1},
		{"GET", "/healthz/../healthz", priority.Normal, 1},
		{"GET", "/%68ealthz", priority.Normal, 1},
		{"GET", "/%65xport", priority.Batch, 5}, // nor does it escape what the plain one costs
		{"GET", "//export", priority.Batch, 5},
		{"GET", "/a/..//export", priority.Batch, 5},
		{"GET", "/%2E/export", priority.Batch, 5},
		{"GET", "/f%69les/a", priority.Normal, 2},
		{"GET", "/files//a", priority.Normal, 2},
		{"GET", "/x/..//files/", priority.Normal, 2},
		{"GET", "//nowhere", priority.Normal, 1},
		{"GET", "//", priority.Normal, 1},
	} {
		r := request(tc.method, "/")
		target, err := url.ParseRequestURI(tc.target) // as net/http reads it
		if err != nil {
			t.Fatal(err)
		}
		r.URL = target
		level, reason, cost := verdictOn(t, shop, r)
		if level != tc.level || cost != tc.cost || reason == shed.Exempt {
			t.Errorf("%s %s: %v %v for %d, want %v for %d", tc.method, tc.target, level, reason, cost, tc.level, tc.cost)
		}
	}
}

func TestRequestsWithoutAPathAreNormal(t *testing.T) {
	for _, r := range []*http.Request{
		{Method: "OPTIONS", Host: "gate.test", RemoteAddr: "192.0.2.1:1", Header: http.Header{}, URL: mustURL(t, "*")},
		{Method: "CONNECT", Host: "gate.test:443", RemoteAddr: "192.0.2.1:1", Header: http.Header{}, URL: mustURL(t, "//gate.test:443")},
	} {
		if level, _, cost := verdictOn(t, shop, r); level != priority.Normal || cost != 1 {
			t.Errorf("%s: %v for %d", r.Method, level, cost)
		}
	}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRoutesThatMakeNoSenseAreErrorsThatNameThePattern(t *testing.T) {
	normal := admission.AtLevel(priority.Normal)
	for want, routes := range map[string]map[string]admission.Rule{
		`Routes["GET /a/{x}"]`:       {"GET /a/{x}": normal, "GET /a/{y}": normal},
		`Routes["/{a}/x"]`:           {"/{a}/x": normal, "/x/{b}": normal},
		`Routes["no slash"]`:         {"no slash": normal},
		`Routes["/{"]`:               {"/{": normal},
		`Routes[""]`:                 {"": normal},
		`Routes["/p"]: InPool("db")`: {"/p": admission.AtLevel(priority.Normal, admission.InPool("db"))},
		`Routes["/p"]: invalid`:      {"/p": admission.AtLevel(priority.Level(9))},
		`Routes["/p"]: Exempt`:       {"/p": admission.AtLevel(priority.Normal, admission.Exempt(), admission.Cost(2))},
		`Routes["/p"]: Cap and S`:    {"/p": admission.AtLevel(priority.Normal, admission.Cap(1), admission.Stream(1))},
	} {
		_, err := admission.New(admission.Options{Routes: routes})
		if err == nil || !strings.Contains(err.Error(), want) {
			// Of two patterns in conflict either may be named first: both are named.
			if err == nil || len(routes) < 2 || !strings.Contains(err.Error(), "Routes[") || !strings.Contains(err.Error(), "conflicts") {
				t.Errorf("%s: error = %v", want, err)
			}
		}
	}
}

func TestRouteTableAppliesEveryOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Pool: admission.Pool{Limit: shed.Fixed(10)}, Pools: map[string]admission.Pool{"db": {Limit: shed.Fixed(1), MaxWait: admission.NoWait}},
			Routes: map[string]admission.Rule{
				"/narrow": admission.AtLevel(priority.Normal, admission.Rate(ratelimit.PerKey(0, 1, ratelimit.Name("narrow")))),
				"/db":     admission.AtLevel(priority.Normal, admission.InPool("db")),
				"/capped": admission.AtLevel(priority.Normal, admission.Cap(1)),
			},
		})
		block := newHeld()
		h := g.Handler(block)
		var wg sync.WaitGroup
		for _, path := range []string{"/narrow", "/db", "/capped", "/free"} {
			wg.Go(func() { do(h, request("GET", path)) })
		}
		synctest.Wait()
		mustRefuseAny(t, do(h, request("GET", "/narrow")), 429, shed.NotAdmissible, shed.RateLimited)
		mustRefuseAny(t, do(h, request("GET", "/n%61rrow")), 429, shed.NotAdmissible, shed.RateLimited)
		mustRefuse(t, do(h, request("GET", "/db")), 503, shed.Capacity)
		mustRefuse(t, do(h, request("GET", "/capped")), 503, shed.RouteCap)
		mustRefuse(t, do(h, request("GET", "//capped")), 503, shed.RouteCap)
		close(block.release)
		wg.Wait()
		if n := block.served.Load(); n != 4 {
			t.Errorf("%d served, want 4", n)
		}
		names := []string{}
		for _, l := range g.Stats().Limits {
			names = append(names, l.Name)
		}
		if !slices.Contains(names, "route") {
			t.Errorf("limits in the stats: %q; the table's are missing", names)
		}
		atRest(t, g)
	})
}

func mustRefuseAny(t *testing.T, w *httptest.ResponseRecorder, status int, reasons ...shed.Reason) {
	t.Helper()
	for _, r := range reasons {
		if w.Code == status && w.Header().Get("Headgate-Reason") == r.String() {
			return
		}
	}
	t.Errorf("answer = %d %q, want %d and one of %v", w.Code, w.Header().Get("Headgate-Reason"), status, reasons)
}

// A stream declared in the table is waited for by Drain like any other.
func TestStreamOfTheTableIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := admission.MustNew(admission.Options{
			Pool: admission.Pool{Limit: shed.Fixed(1)}, Routes: map[string]admission.Rule{"/events": admission.AtLevel(priority.Normal, admission.Stream(5))},
		})
		end := make(chan struct{})
		h := g.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			<-end
		}))
		go do(h, request("GET", "/events"))
		synctest.Wait()
		if s := g.Stats(); s.Streams != 1 || s.InFlight() != 0 {
			t.Errorf("%d streams, %d in flight; want 1 and 0", s.Streams, s.InFlight())
		}
		if err := g.Update(admission.Options{Pool: admission.Pool{Limit: shed.Fixed(1)}}); err != nil { // the table is gone, the stream is not
			t.Fatal(err)
		}
		drained := make(chan error)
		go func() { drained <- g.Drain(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-drained:
			t.Fatalf("drained (%v) with a stream open", err)
		default:
		}
		close(end)
		if err := <-drained; err != nil {
			t.Error(err)
		}
		atRest(t, g)
	})
}

func TestPlainPathsCostNoAllocation(t *testing.T) {
	g := admission.MustNew(admission.Options{Routes: shop, HTTP: admission.HTTP{DisableResponseWrapping: true}})
	bare := admission.MustNew(admission.Options{HTTP: admission.HTTP{DisableResponseWrapping: true}})
	per := func(h http.Handler) float64 {
		r, w := request("POST", "/checkout"), httptest.NewRecorder()
		return testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) })
	}
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if with, without := per(g.Handler(nothing)), per(bare.Handler(nothing)); with > without {
		t.Errorf("%v allocs with a table, %v without", with, without)
	}
}
