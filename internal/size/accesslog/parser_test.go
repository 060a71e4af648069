package accesslog

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const stamp = "2026-03-02T10:00:05"

var second = time.Date(2026, 3, 2, 10, 0, 5, 0, time.UTC)

func TestLinesAsServersWriteThem(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want Request
	}{
		"common": {
			`192.0.2.7 - - [02/Mar/2026:11:00:05 +0100] "GET /search?q=x HTTP/1.1" 200 12`,
			Request{Stamp: second, AtEnd: true, Coarse: true, Route: "GET /search", Caller: "192.0.2.7", Status: 200},
		},
		"combined": {
			`192.0.2.7 - bob [02/Mar/2026:10:00:05 +0000] "POST /checkout HTTP/2.0" 201 - "https://a.test/" "Agent \"quoted\" 1.0"`,
			Request{Stamp: second, AtEnd: true, Coarse: true, Route: "POST /checkout", Caller: "192.0.2.7", Status: 201},
		},
		"nginx with request_time": {
			`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8" 0.123 0.120`,
			Request{Stamp: second, AtEnd: true, Coarse: true, Timed: true, Took: 123 * time.Millisecond, Route: "GET /", Caller: "192.0.2.7", Status: 200, Latency: nginxLatency},
		},
		"nginx with a named time": {
			`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8" urt=9 rt=0.5`,
			Request{Stamp: second, AtEnd: true, Coarse: true, Timed: true, Took: 500 * time.Millisecond, Route: "GET /", Caller: "192.0.2.7", Status: 200, Latency: nginxLatency},
		},
		"Apache with %D and a virtual host": {
			`shop.test:443 192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8" 4200`,
			Request{Stamp: second, Coarse: true, Timed: true, Took: 4200 * time.Microsecond, Route: "GET /", Caller: "192.0.2.7", Status: 200, Latency: apacheLatency},
		},
		"slog": {
			`{"time":"` + stamp + `.25Z","level":"INFO","msg":"request","method":"GET","path":"/users/17","status":200,"duration":1500000,"remote_addr":"192.0.2.7:5123"}`,
			Request{Stamp: second.Add(250 * time.Millisecond), AtEnd: true, Timed: true, Took: 1500 * time.Microsecond, Route: "GET /users/{}", Caller: "192.0.2.7", Status: 200, Latency: "field duration, read as ns"},
		},
		"Caddy": {
			`{"level":"info","ts":1772445605.5,"logger":"http.log","request":{"remote_ip":"192.0.2.7","client_ip":"192.0.2.9","method":"GET","uri":"/a?b","headers":{"X":["}"]}},"duration":0.25,"status":404}`,
			Request{Stamp: second.Add(500 * time.Millisecond), AtEnd: true, Timed: true, Took: 250 * time.Millisecond, Route: NotFound, Caller: "192.0.2.9", Status: 404, Latency: "field duration, read as s"},
		},
		"nginx in JSON": {
			`{"time_iso8601":"` + stamp + `+00:00","request":"GET /x HTTP/1.1","status":"200","request_time":"0.010","remote_addr":"192.0.2.7"}`,
			Request{Stamp: second, AtEnd: true, Coarse: true, Timed: true, Took: 10 * time.Millisecond, Route: "GET /x", Caller: "192.0.2.7", Status: 200, Latency: "field request_time, read as s"},
		},
		"a cloud's load balancer": {
			`{"timestamp":"` + stamp + `.5Z","httpRequest":{"requestMethod":"GET","requestUrl":"https://a.test/x/y?z","status":200,"latency":"0.004s","remoteIp":"192.0.2.7"}}`,
			Request{Stamp: second.Add(500 * time.Millisecond), AtEnd: true, Timed: true, Took: 4 * time.Millisecond, Route: "GET /x/y", Caller: "192.0.2.7", Status: 200, Latency: "field latency, read as a duration"},
		},
		"a name that tells the unit": {
			`{"msec":1772445605000,"method":"GET","url":"/x","duration_ms":2.5}`,
			Request{Stamp: second, AtEnd: true, Timed: true, Took: 2500 * time.Microsecond, Route: "GET /x", Latency: "field duration_ms, read as ms"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewParser(Options{}).Parse([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			if !got.Stamp.Equal(c.want.Stamp) {
				t.Errorf("stamp %v, want %v", got.Stamp, c.want.Stamp)
			}
			if got.Stamp = c.want.Stamp; got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestOptionsOverruleTheGuess(t *testing.T) {
	text := `a - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "ua" 7 9`
	json := `{"time":"` + stamp + `Z","method":"GET","path":"/","took":5,"duration":1,"user":"u1","ip":"192.0.2.1"}`
	for name, c := range map[string]struct {
		Options
		line   string
		took   time.Duration
		caller string
		atEnd  bool
	}{
		"field by number":      {Options{Latency: "11", Unit: time.Millisecond}, text, 9 * time.Millisecond, "a", true},
		"stamped at the end":   {Options{Stamp: End}, text, 7 * time.Microsecond, "a", true},
		"field by name":        {Options{Latency: "took", Unit: time.Millisecond}, json, 5 * time.Millisecond, "192.0.2.1", true},
		"caller by name":       {Options{Caller: "user"}, json, 5 * time.Nanosecond, "u1", true},
		"stamped at the start": {Options{Stamp: Start}, json, 5 * time.Nanosecond, "192.0.2.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := NewParser(c.Options).Parse([]byte(c.line))
			if err != nil || r.Took != c.took || r.Caller != c.caller || r.AtEnd != c.atEnd {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}

func TestWhatIsWrongWithALineIsSaid(t *testing.T) {
	for line, want := range map[string]error{
		"":                                     ErrFormat,
		"hello":                                ErrFormat,
		`a - - [today] "GET / HTTP/1.1" 200 1`: ErrTime,
		`a - - [02/Mar/2026:10:00:05 +0000] "\x16\x03\x01" 400 1`:        ErrRequest,
		`a - - [02/Mar/2026:10:00:05 +0000] "-" 408 0`:                   ErrRequest,
		`a - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" none 1`:     ErrFormat,
		`a - - [02/Mar/1026:10:00:05 +0000] "GET / HTTP/1.1" 200 1`:      ErrTime,
		`{"time":"` + stamp + `Z","method":"GET","path":"/`:              ErrJSON,
		`{"method":"GET","path":"/"}`:                                    ErrTime,
		`{"time":1e300,"method":"GET","path":"/"}`:                       ErrTime,
		`{"time":"` + stamp + `Z","msg":"started"}`:                      ErrRequest,
		`{"time":"` + stamp + `Z","method":"get me","path":"/"}`:         ErrRequest,
		`{"time":"` + stamp + `Z","method":"GET","path":"not a target"}`: ErrRequest,
	} {
		if r, err := NewParser(Options{}).Parse([]byte(line)); !errors.Is(err, want) {
			t.Errorf("%q: got %+v, %v; want %v", line, r, err, want)
		}
	}
}

func TestImpossibleLatenciesAreNone(t *testing.T) {
	for _, value := range []string{`-1`, `1e99`, `"NaN"`, `"soon"`, `null`, `{}`, `[1]`, `90000.5`} {
		r, err := NewParser(Options{}).Parse([]byte(`{"time":"` + stamp + `Z","method":"GET","path":"/","duration":` + value + `}`))
		if err != nil || r.Timed || r.Took != 0 {
			t.Errorf("duration %s: %+v, %v", value, r, err)
		}
	}
}

func TestIdentifiersAreFoldedIntoOneRoute(t *testing.T) {
	for target, want := range map[string]string{
		"/users/17/orders":                        "GET /users/{}/orders",
		"/u/0b6c2f9e-3f1d-4c58-9f5e-8f1f6f0a1b2c": "GET /u/{}",
		"/commit/9f3acde1":                        "GET /commit/{}",
		"/mail/a@b.test":                          "GET /mail/{}",
		"/v2/search":                              "GET /v2/search",
		"/a/b/c/d/e/f/g/h":                        "GET /a/b/c/d/e/f/...",
		"/" + strings.Repeat("x", 200):            "GET /...",
		"/\x1b[31m":                               "GET /{}",
		"//":                                      "GET /",
		"https://a.test":                          "GET /",
	} {
		if got, ok := route("GET", target, 200); !ok || got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
}

// FuzzParse: whatever a log holds, a line is read or refused, and what is read is
// bounded and printable.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`a - - [02/Mar/2026:10:00:05 +0000] "GET /x?y HTTP/1.1" 200 12 "-" "ua" 0.123`,
		`{"ts":1772445605.5,"request":{"remote_ip":"192.0.2.7","method":"GET","uri":"/a"},"duration":0.25,"status":200}`,
		`{"time":"` + stamp + `Z","request":"GET /\u001b HTTP/1.1"}`, `"`, `[`, `{`, `{}`, `a [b] "c`, `a - - [] "" "`,
	} {
		f.Add([]byte(seed))
	}
	p := NewParser(Options{})
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := p.Parse(line)
		if err != nil {
			return
		}
		if r.Took < 0 || r.Took > longest || !plausible(r.Stamp) || r.Route == "" || len(r.Route) > mostRoute+len("HTTPMETHOD /...") {
			t.Errorf("%q: %+v", line, r)
		}
		if strings.ContainsFunc(r.Route, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("%q: route %q does not print", line, r.Route)
		}
	})
}
