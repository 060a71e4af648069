package edge

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// script is an upstream that gives the answer of the path: /429, /503, … with Retry-After
// and further fields from the query. It counts what it is sent.
type script struct{ asked atomic.Int64 }

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	for field, values := range r.URL.Query() {
		w.Header()[http.CanonicalHeaderKey(field)] = values
	}
	switch r.URL.Path {
	case "/429":
		w.WriteHeader(429)
	case "/503":
		w.WriteHeader(503)
	case "/403":
		w.WriteHeader(403)
	case "/500":
		w.WriteHeader(500)
	}
}

// Case ED-02: istio/istio#39504
func TestAnAnswerAboutOneUserSlowsNobodyElseDown(t *testing.T) {
	for name, answer := range map[string]string{
		"429":                         "/429?retry-after=30",
		"429 of a gate":               "/429?retry-after=30&headgate-reason=rate-limited",
		"the cap of a caller":         "/429?retry-after=30&headgate-reason=tenant-cap",
		"429 that claims to be more":  "/429?retry-after=30&headgate-reason=capacity",
		"429 and a spent quota":       "/429?retry-after=86400&x-ratelimit-remaining=0",
		"the cap of a route":          "/503?retry-after=30&headgate-reason=route-cap",
		"403 and a limit of a vendor": "/403?retry-after=30&x-ratelimit-remaining=0&x-github-request-id=1",
		"one route's 503":             "/503?retry-after=30",
	} {
		t.Run(name, func(t *testing.T) {
			upstream := new(script)
			e, _, _ := started(t, upstream, "")
			for range 5 {
				get(e, "/")
			}
			w := get(e, answer)
			if got, want := w.Header().Get("Retry-After"), httptest.NewRequest("GET", answer, nil).FormValue("retry-after"); got != want {
				t.Errorf("Retry-After %q, want %q as the upstream said", got, want)
			}
			if w.Header().Get("Headgate-Retried") != "" {
				t.Error("marked as retried, which it was not")
			}
			for i := range 20 {
				if w := get(e, "/"); w.Code != 200 {
					t.Fatalf("request %d of another user: %d", i, w.Code)
				}
			}
			if got := upstream.asked.Load(); got != 26 {
				t.Errorf("the upstream was asked %d times for 26 requests", got)
			}
		})
	}
}

func TestWhatTheUpstreamSaysOfItselfIsHeard(t *testing.T) {
	for _, c := range []struct {
		name, file, answer string
		times              int
		heard              bool
	}{
		{"a gate is full", "", "/503?retry-after=5&headgate-reason=capacity", 1, true},
		{"many 503", "", "/503?retry-after=5", 12, true},
		{"few 503", "", "/503?retry-after=5", 5, false},
		{"a gate is full, switched off", "upstream: {signals: {overload: false}}", "/503?retry-after=5&headgate-reason=capacity", 1, false},
		{"many 503, switched off", "upstream: {signals: {overload: false}}", "/503?retry-after=5", 12, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			upstream := new(script)
			e, _, _ := started(t, upstream, c.file)
			for range c.times {
				if w := get(e, c.answer); w.Code != 503 || w.Header().Get("Retry-After") == "" {
					t.Fatalf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
				}
			}
			w := get(e, "/")
			if heard := w.Code == 503; heard != c.heard {
				t.Errorf("another request: %d, heard %v, want %v", w.Code, heard, c.heard)
			}
			if c.heard && (w.Header().Get("Retry-After") == "" || w.Header().Get("Headgate-Retried") != "") {
				t.Errorf("header of a request held back: %v", w.Header())
			}
		})
	}
}

// Case ED-03: tried on the product
func TestNoSlotIsHeldForASleep(t *testing.T) {
	for _, file := range []string{"", "upstream: {retry: safe}", "upstream: {retry: none}"} {
		upstream := new(script)
		e, _, _ := started(t, upstream, file)
		began := time.Now()
		for range 4 {
			w := get(e, "/503?retry-after=6")
			if w.Code != 503 || w.Header().Get("Retry-After") != "6" {
				t.Errorf("%q: %d, Retry-After %q", file, w.Code, w.Header().Get("Retry-After"))
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%q: four answers took %v", file, took)
		}
		if got := upstream.asked.Load(); got != 4 {
			t.Errorf("%q: asked %d times", file, got)
		}
	}
}

func TestWhatIsSentAgain(t *testing.T) {
	for _, c := range []struct {
		retry, answer string
		want          int64
	}{
		{"unsent", "/500", 1}, {"safe", "/500", 3}, {"none", "/500", 1},
		{"unsent", "/503?retry-after=0", 1}, {"none", "/503?retry-after=0", 1},
	} {
		upstream := new(script)
		e, _, _ := started(t, upstream, "upstream: {retry: "+c.retry+"}")
		get(e, c.answer)
		if got := upstream.asked.Load(); got != c.want {
			t.Errorf("retry %s: %s was asked for %d times, want %d", c.retry, c.answer, got, c.want)
		}
	}
	for _, c := range []struct {
		retry string
		want  uint64
	}{{"unsent", 2}, {"safe", 2}, {"none", 0}} {
		e := startedAt(t, "http://127.0.0.1:1", "upstream: {retry: "+c.retry+"}") // nobody listens there
		began := time.Now()
		if w := get(e, "/"); w.Code != 502 {
			t.Errorf("status %d", w.Code)
		}
		var got uint64
		for _, op := range e.outbound.Stats().Operations {
			got += op.Retries
		}
		if took := time.Since(began); got != c.want || took > time.Second {
			t.Errorf("retry %s: a refused connection was tried again %d times, want %d; %v", c.retry, got, c.want, took)
		}
	}
}

// An upstream that counts what it is sent slows down whoever shares the count.
func TestA429IsHeardByWhatTheUpstreamCounts(t *testing.T) {
	const routes = "\ngate:\n  routes:\n    /429: {}\n    /other: {}\n"
	for _, c := range []struct {
		throttle              string
		same, route, neighbor bool // held back: the same again, another route, another caller
	}{
		{"host", true, true, true},
		{"route", true, false, true},
		{"caller", true, true, false},
	} {
		t.Run(c.throttle, func(t *testing.T) {
			upstream := new(script)
			e, _, _ := started(t, upstream, "upstream: {signals: {throttle: "+c.throttle+"}}"+routes)
			from := func(address, path string) int {
				r := httptest.NewRequest("GET", path, nil)
				r.RemoteAddr = address + ":1"
				w := httptest.NewRecorder()
				e.handler.ServeHTTP(w, r)
				return w.Code
			}
			if got := from("192.0.2.1", "/429?retry-after=30"); got != 429 {
				t.Fatalf("status %d", got)
			}
			for _, x := range []struct {
				address, path string
				held          bool
			}{
				{"192.0.2.1", "/429", c.same}, {"192.0.2.1", "/other", c.route}, {"192.0.2.9", "/429", c.neighbor},
			} {
				if held := from(x.address, x.path) == 503; held != x.held {
					t.Errorf("%s for %s: held back %v, want %v", x.path, x.address, held, x.held)
				}
			}
		})
	}
}

func TestUnknownWordsOfTheUpstreamAreMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"upstream: {retry: always}":                  ":1:19: upstream.retry: unknown \"always\"; there are: none, unsent, safe",
		"upstream: {signals: {throttle: everybody}}": ":1:32: upstream.signals.throttle: unknown",
	} {
		_, err := source{upstream: "http://h", path: file(t, text)}.load(nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
