package accesslog

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const stamp = "2026-03-02T10:00:05"

var second = time.Date(2026, 3, 2, 10, 0, 5, 0, time.UTC)

// reads is what a line of a program is read as.
type reads struct {
	line   string
	format string
	field  string
	unit   time.Duration
	took   time.Duration
	route  string
	caller string
	status int
	start  bool // stamped at the start
}

const ms = time.Millisecond

var programs = map[string]reads{
	"common":                             {`192.0.2.7 - - [02/Mar/2026:11:00:05 +0100] "GET /search?q=x HTTP/1.1" 200 12`, "common", "", 0, 0, "GET /search", "192.0.2.7", 200, true},
	"combined":                           {`192.0.2.7 - bob [02/Mar/2026:10:00:05 +0000] "POST /checkout HTTP/2.0" 201 - "https://a.test/" "Agent \"quoted\" 1.0"`, "combined", "", 0, 0, "POST /checkout", "192.0.2.7", 201, true},
	"nginx main":                         {`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8" "203.0.113.9"`, "combined", "", 0, 0, "GET /", "192.0.2.7", 200, true},
	"nginx with times":                   {`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8" "-" 0.123 0.120`, "nginx, combined with $request_time", "request_time", time.Second, 123 * ms, "GET /", "192.0.2.7", 200, false},
	"nginx with named times":             {`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8" "-" rt=0.500 uct="0.000" uht="0.499" urt="0.499"`, "combined", "rt", time.Second, 500 * ms, "GET /", "192.0.2.7", 200, false},
	"ingress-nginx":                      {`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET /x HTTP/1.1" 200 12 "-" "ua" 54 64.495 [ns-svc-80] [] 10.0.0.1:8080 12 64.490 200 8a1f`, "ingress-nginx", "request_time", time.Second, 64495 * ms, "GET /x", "192.0.2.7", 200, false},
	"ingress-nginx in a container's log": {`2026-03-02T10:00:06.1Z stdout F 192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET /x HTTP/1.1" 200 12 "-" "ua" 54 0.004 [ns-svc-80] [] 10.0.0.1:8080 12 0.004 200 8a1f`, "ingress-nginx", "request_time", time.Second, 4 * ms, "GET /x", "192.0.2.7", 200, false},
	"Apache with %T/%D":                  {`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 "-" "curl/8" **0/4200**`, "Apache, combined with %T/%D", "%D", time.Microsecond, 4200 * time.Microsecond, "GET /", "192.0.2.7", 200, true},
	"Traefik":                            {`192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET /a HTTP/1.1" 200 12 "-" "curl/8" 41 "web@docker" "http://10.0.0.2:80" 17ms`, "Traefik", "the duration", 0, 17 * ms, "GET /a", "192.0.2.7", 200, true},
	"Traefik JSON":                       {`{"ClientAddr":"192.0.2.7:5123","ClientHost":"192.0.2.7","ClientPort":"5123","DownstreamContentSize":12,"DownstreamStatus":200,"Duration":1500000,"OriginDuration":1400000,"OriginStatus":200,"Overhead":100000,"RequestAddr":"a.test","RequestCount":3,"RequestHost":"a.test","RequestMethod":"GET","RequestPath":"/a?x=1","RequestProtocol":"HTTP/1.1","StartLocal":"2026-03-02T10:00:05Z","StartUTC":"2026-03-02T10:00:05Z","entryPointName":"web","level":"info","msg":"","time":"2026-03-02T10:00:09Z"}`, "Traefik JSON", "Duration", time.Nanosecond, 1500 * time.Microsecond, "GET /a", "192.0.2.7", 200, true},
	"Caddy":                              {`{"level":"info","ts":1772445605,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"192.0.2.7","remote_port":"5123","client_ip":"192.0.2.9","proto":"HTTP/2.0","method":"GET","host":"a.test","uri":"/a?b","headers":{"X":["}"]}},"bytes_read":0,"user_id":"","duration":0.25,"size":12,"status":200,"resp_headers":{}}`, "Caddy", "duration", time.Second, 250 * ms, "GET /a", "192.0.2.9", 200, false},
	"HAProxy":                            {`Mar  2 10:00:05 lb haproxy[14389]: 192.0.2.7:33317 [02/Mar/2026:10:00:05.000] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1"`, "HAProxy", "Ta", ms, 109 * ms, "GET /index.html", "192.0.2.7", 200, true},
	"Envoy":                              {`[2026-03-02T10:00:05.000Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "192.0.2.7" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80"`, "Envoy", "the duration", ms, 226 * ms, "POST /api/v1/locations", "192.0.2.7", 204, true},
	"Istio":                              {`[2026-03-02T10:00:05.000Z] "GET /status HTTP/1.1" 200 - via_upstream - "-" 0 135 4 4 "-" "curl/7.73.0" "84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 192.0.2.7:37652 outbound_.8000_._.httpbin default`, "Istio (Envoy)", "the duration", ms, 4 * ms, "GET /status", "192.0.2.7", 200, true},
	"Istio JSON":                         {`{"authority":"httpbin:8000","bytes_received":0,"bytes_sent":135,"downstream_remote_address":"192.0.2.7:37652","duration":4,"method":"GET","path":"/status","protocol":"HTTP/1.1","response_code":200,"response_code_details":"via_upstream","response_flags":"-","start_time":"2026-03-02T10:00:05Z","upstream_service_time":"4","x_forwarded_for":null}`, "Envoy or Istio JSON", "duration", ms, 4 * ms, "GET /status", "192.0.2.7", 200, true},
	"AWS ALB":                            {`https 2026-03-02T10:00:05.000000Z app/my-lb/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.001 0.048 0.003 200 200 0 57 "GET https://www.example.com:443/a HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281" "www.example.com" "-" 1 2026-03-02T10:00:04.948000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`, "AWS ALB", "the three processing times", time.Second, 52 * ms, "GET /a", "192.0.2.7", 200, false},
	"zerolog":                            {`{"level":"info","ip":"192.0.2.7","method":"GET","url":"/a?b","status":200,"size":12,"duration":3.21,"time":"2026-03-02T10:00:05Z"}`, "zerolog", "duration", ms, 3210 * time.Microsecond, "GET /a", "192.0.2.7", 200, false},
	"zerolog, whole":                     {`{"level":"info","ip":"192.0.2.7","method":"GET","url":"/a","status":200,"duration":3,"time":"2026-03-02T10:00:05Z","message":"request"}`, "zerolog", "duration", ms, 3 * ms, "GET /a", "192.0.2.7", 200, false},
	"pino":                               {`{"level":30,"time":1772445605000,"pid":657,"hostname":"h","req":{"id":1,"method":"GET","url":"/a","headers":{},"remoteAddress":"192.0.2.7","remotePort":57253},"res":{"statusCode":200,"headers":{}},"responseTime":17,"msg":"request completed"}`, "pino", "responseTime", ms, 17 * ms, "GET /a", "192.0.2.7", 200, false},
	"slog JSON":                          {`{"time":"2026-03-02T10:00:05Z","level":"INFO","msg":"request","method":"GET","path":"/users/17","status":200,"duration":1500000,"remote_addr":"192.0.2.7:5123"}`, "slog JSON", "duration", time.Nanosecond, 1500 * time.Microsecond, "GET /users/{}", "192.0.2.7", 200, false},
	"slog text":                          {`time=2026-03-02T10:00:05.000Z level=INFO msg="a request" method=GET path="/a?b=c d" status=200 duration=1.5ms remote_addr=192.0.2.7:5123`, "slog text", "duration", 0, 1500 * time.Microsecond, "GET /a", "192.0.2.7", 200, false},
	"zap":                                {`{"level":"info","ts":1772445605,"caller":"app/main.go:12","msg":"request","method":"GET","path":"/a","status":200,"ip":"192.0.2.7","latency":0.0015}`, "zap", "latency", time.Second, 1500 * time.Microsecond, "GET /a", "192.0.2.7", 200, false},
	"nginx JSON":                         {`{"time_iso8601":"2026-03-02T10:00:05+00:00","request":"GET /x HTTP/1.1","status":"200","request_time":"0.010","remote_addr":"192.0.2.7"}`, "nginx JSON", "request_time", time.Second, 10 * ms, "GET /x", "192.0.2.7", 200, false},
	"echo":                               {`{"time":"2026-03-02T10:00:05Z","id":"","remote_ip":"192.0.2.7","host":"a","method":"GET","uri":"/x","user_agent":"","status":200,"error":"","latency":2751,"latency_human":"2.751µs","bytes_in":0,"bytes_out":13}`, "echo", "latency", time.Nanosecond, 2751, "GET /x", "192.0.2.7", 200, false},
	"chi":                                {`2026/03/02 10:00:05 "GET http://localhost:3333/x HTTP/1.1" from 192.0.2.7:52022 - 200 12B in 1.5ms`, "chi", "the duration", 0, 1500 * time.Microsecond, "GET /x", "192.0.2.7", 200, false},
	"gin":                                {`[GIN] 2026/03/02 - 10:00:05 | 200 |       1.5ms |       192.0.2.7 | GET      "/x"`, "gin", "the duration", 0, 1500 * time.Microsecond, "GET /x", "192.0.2.7", 200, false},
	"a cloud's balancer":                 {`{"timestamp":"2026-03-02T10:00:05Z","httpRequest":{"requestMethod":"GET","requestUrl":"https://a.test/x/y?z","status":200,"latency":"0.004s","remoteIp":"192.0.2.7"}}`, "JSON", "latency", 0, 4 * ms, "GET /x/y", "192.0.2.7", 200, false},
	"a name that tells the unit":         {`{"msec":1772445605000,"method":"GET","url":"/x","status":200,"ip":"192.0.2.7","duration_ms":2.5}`, "nginx JSON", "duration_ms", ms, 2500 * time.Microsecond, "GET /x", "192.0.2.7", 200, false},
	"inside Docker's JSON":               {`{"log":"[GIN] 2026/03/02 - 10:00:05 | 200 |  1.5ms |  192.0.2.7 | GET      \"/x\"\n","stream":"stdout","time":"2026-03-02T10:00:06Z"}`, "gin", "the duration", 0, 1500 * time.Microsecond, "GET /x", "192.0.2.7", 200, false},
}

// Case SZ-01: tried on the product
// Case SZ-02: tried on the product
func TestLinesAreReadAsTheirProgramsWriteThem(t *testing.T) {
	for name, want := range programs {
		t.Run(name, func(t *testing.T) {
			r, err := NewParser(Options{}).Parse([]byte(want.line))
			if err != nil {
				t.Fatal(err)
			}
			got := reads{want.line, r.Format, r.Field, r.Unit, r.Took, r.Route, r.Caller, r.Status, !r.AtEnd}
			if got != want || !r.Stamp.Equal(second) || r.Timed != (want.field != "") || r.Asked || r.Flaw != nil {
				t.Errorf("got  %+v\nwant %+v\nstamp %v, asked %v, flaw %v", got, want, r.Stamp, r.Asked, r.Flaw)
			}
		})
	}
}

// TestOneParserReadsAllFormatsInTurn: a log may change its format midway.
func TestOneParserReadsAllFormatsInTurn(t *testing.T) {
	p := NewParser(Options{})
	for range 2 {
		for name, want := range programs {
			if r, err := p.Parse([]byte(want.line)); err != nil || r.Format != want.format || r.Took != want.took {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
	}
}

// Case SZ-02: tried on the product
func TestAUnitThatCannotBeKnownIsAskedFor(t *testing.T) {
	head := `192.0.2.7 - - [02/Mar/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 12 `
	for line, field := range map[string]string{
		head + `"-" "curl/8" 4200`:     "10",
		head + `"-" "curl/8" 0.001234`: "10",
		head + `4200`:                  "8",
		head + `"-" "curl/8" rt=5`:     "rt",
		`{"time":"2026-03-02T10:00:05Z","method":"GET","path":"/","duration":3}`:                                            "duration",
		`{"time":"2026-03-02T10:00:05Z","method":"GET","path":"/","duration":3.5}`:                                          "duration",
		`{"level":"info","msg":"x","time":"2026-03-02T10:00:05Z","method":"GET","path":"/","duration":3}`:                   "duration",
		`{"level":"INFO","msg":"x","time":"2026-03-02T10:00:05Z","method":"GET","path":"/","duration":3.5}`:                 "duration",
		`{"level":"info","ts":1772445605.5,"msg":"x","method":"GET","path":"/","latency":12}`:                               "latency",
		`{"level":30,"time":1772445605000,"pid":1,"hostname":"h","req":{"method":"GET","url":"/"},"duration":12,"msg":"x"}`: "duration",
		`time=2026-03-02T10:00:05.000Z level=INFO msg=x method=GET path=/ duration=12`:                                      "duration",
	} {
		r, err := NewParser(Options{}).Parse([]byte(line))
		if err != nil || !r.Asked || r.Timed || r.Took != 0 || r.Field != field {
			t.Errorf("%s\n%+v, %v", line, r, err)
		}
		r, err = NewParser(Options{Latency: []LatencyField{{field, ms}}}).Parse([]byte(line))
		if err != nil || r.Asked || !r.Timed || r.Unit != ms {
			t.Errorf("told the unit: %s\n%+v, %v", line, r, err)
		}
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
		"field by number":      {Options{Latency: []LatencyField{{"11", time.Millisecond}}}, text, 9 * time.Millisecond, "a", false},
		"stamped at the end":   {Options{Stamp: End, Unit: time.Microsecond}, text, 7 * time.Microsecond, "a", true},
		"field by name":        {Options{Latency: []LatencyField{{"took", time.Millisecond}}}, json, 5 * time.Millisecond, "192.0.2.1", true},
		"one for each format":  {Options{Latency: []LatencyField{{"11", time.Second}, {"took", time.Millisecond}}}, json, 5 * time.Millisecond, "192.0.2.1", true},
		"caller by name":       {Options{Caller: "user", Unit: 1}, json, 5 * time.Nanosecond, "u1", true},
		"stamped at the start": {Options{Stamp: Start, Unit: 1}, json, 5 * time.Nanosecond, "192.0.2.1", false},
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
		if err != nil || r.Timed || r.Took != 0 || r.Asked && value != "-1" && value != "1e99" && value != "90000.5" {
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
		"/users/17.json":                          "GET /users/{}.json",
		"/jobs/17:cancel":                         "GET /jobs/{}:cancel",
		"/u/0b6c2f9e-3f1d-4c58-9f5e-8f1f6f0a1b2c.json":     "GET /u/{}.json",
		"/u/0b6c2f9e-3f1d-4c58-9f5e-8f1f6f0a1b2c:undelete": "GET /u/{}:undelete",
		"/u/deadbeef-dead-beef-dead-beefdeadbeef":          "GET /u/{}",
		"/i/01ARZ3NDEKTSV4RRFFQ69G5FAV.png":                "GET /i/{}.png",
		"/i/01arz3ndektsv4rrffq69g5fav":                    "GET /i/{}",
		"/commit/9f3acde1.patch":                           "GET /commit/{}.patch",
		"/orders/order-17":                                 "GET /orders/order-{}",
		"/n/V1StGXR8_Z5jdHi6B-myT":                         "GET /n/{}",
		"/pay/cus_9s6XKzkNRiz8i3":                          "GET /pay/{}",
		"/day/2026-03-02":                                  "GET /day/{}",
		"/a/jquery-3.6.0.min.js":                           "GET /a/jquery-{}.min.js",
		"/a;jsessionid=8F2/b":                              "GET /a/b",
		"/get-user-profile":                                "GET /get-user-profile",
		"/robots.txt":                                      "GET /robots.txt",
		"/%00/x":                                           "GET /{}/x",
		"https://a.test":                                   "GET /",
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
		`a:1 [02/Mar/2026:10:00:05.000] f b/s 1/2/3/4/5 200 1 - - - - - "GET / HTTP/1.1"`, `time=2026-03-02T10:00:05Z a=b c="d method=GET`,
		`[2026-03-02T10:00:05.000Z] "GET / HTTP/2" 200 - - - "-" 1`, `[GIN] 2026/03/02 - 10:00:05 | 200 | 1s | a | GET "/"`,
	} {
		f.Add([]byte(seed))
	}
	for _, c := range programs {
		f.Add([]byte(c.line))
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
