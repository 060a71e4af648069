package edge

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked sends a request to the admin port, with a token if it is not empty.
func asked(e *edge, method, url, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.Host = "127.0.0.1"
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	e.admin().ServeHTTP(w, r)
	return w
}

// changeable is an edge whose policy may be changed with the token secret.
func changeable(t *testing.T, text string) (*edge, string, func() string) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, log, path := started(t, says("hello"), "admin_token_file: "+token+"\n"+text)
	return e, path, log.String
}

const changeableGate = `redis: ""
gate:
  callers: [{api_key: {header: K, keys: [{key: a-credential, name: acme}]}}]
  limits:
    rate: {rate: 1/h, burst: 2}
  capacity: {limit: {throughput: {max: 50}}}
`

func TestThePolicyInForceIsShownWithWhereItComesFrom(t *testing.T) {
	e, path, _ := changeable(t, changeableGate)
	w := asked(e, "GET", "/policy", "", "")
	for _, want := range []string{
		"      burst: 2  # " + path + ":6\n", "stall_timeout: 30s  # default\n", "    max_wait: 1s  # default\n",
		"  # command line\n", "name: acme  # " + path + ":4\n", "key: \"…\"",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is missing in\n%s", want, w.Body)
		}
	}
	if strings.Contains(w.Body.String(), "a-credential") {
		t.Error("a credential is shown")
	}
	if w.Code != 200 {
		t.Errorf("status %d", w.Code)
	}
}

func TestNoPasswordIsShown(t *testing.T) {
	text := "upstream: {url: \"http://me:pass-of-url@h:1\"}\nredis: redis://me:pass-of-redis@127.0.0.1:1\ngate:\n  callers: [{join: [{api_key: {header: K, keys: [{key: pass-of-key}]}}, {address: true}]}]\n"
	e := before(t, source{path: file(t, text)}, io.Discard)
	shown := asked(e, "GET", "/policy", "", "").Body.String()
	if strings.Contains(shown, "pass-of") || !strings.Contains(shown, "h:1") {
		t.Errorf("%s", shown)
	}
	var report strings.Builder
	if err := e.report(&report); err != nil || strings.Contains(report.String(), "pass-of") {
		t.Errorf("%v %s", err, report.String())
	}
}

func TestAChangeNeedsTheToken(t *testing.T) {
	e, _, log := changeable(t, changeableGate)
	without, _, _ := started(t, says("hello"), "")
	const body = "gate: {capacity: {limit: {fixed: 7}}}"
	for _, c := range []struct {
		name  string
		e     *edge
		token string
		want  int
	}{
		{"none is configured", without, "secret", 403},
		{"none is given", e, "", 401},
		{"another is given", e, "Secret", 401},
		{"the right one", e, "secret", 200},
	} {
		if w := asked(c.e, "PATCH", "/policy", c.token, body); w.Code != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, w.Code, c.want, w.Body)
		}
	}
	for name, header := range map[string][2]string{
		"no scheme": {"Authorization", "secret"}, "another scheme": {"Authorization", "Basic secret"}, "two tokens": {"Authorization", "Bearer secret secret"},
		"from another site": {"Origin", "http://evil.example"}, "a browser says so": {"Sec-Fetch-Site", "cross-site"},
	} {
		r := httptest.NewRequest("PATCH", "/policy", strings.NewReader(body))
		r.Host = "127.0.0.1"
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set(header[0], header[1])
		w := httptest.NewRecorder()
		if e.admin().ServeHTTP(w, r); w.Code != 401 && w.Code != 403 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if !strings.Contains(log(), "the token is not the one") {
		t.Errorf("the log says nothing of wrong tokens: %s", log())
	}
	if got := without.gate.Stats().Pools[0].Limit; got == 7 {
		t.Error("changed without a token")
	}
	if err := os.WriteFile(e.settings.Token, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if w := asked(e, "PATCH", "/policy", "", body); w.Code != 403 {
		t.Errorf("an empty token is taken: %d", w.Code)
	}
}

func TestAChangeIsCheckedToldAndUndoneByTheFile(t *testing.T) {
	e, path, log := changeable(t, changeableGate)
	get(e, "/")
	patch := func(query, body string) *httptest.ResponseRecorder {
		return asked(e, "PATCH", "/policy"+query, "secret", body)
	}
	slots := func() int { return e.gate.Stats().Pools[0].Limit }

	before := slots()
	w := patch("?dry_run=true", "gate: {capacity: {limit: {fixed: 7}}}")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "gate.capacity.limit.fixed: 7 (was not set)") || slots() != before {
		t.Errorf("a dry run: %d, %d slots: %s", w.Code, slots(), w.Body)
	}
	w = patch("", "gate: {capacity: {limit: {fixed: 7}}}")
	for _, want := range []string{
		"gate.capacity.limit.fixed: 7 (was not set)", "gate.capacity.limit.throughput.max: gone (was 50, " + path + ":7)",
		"in force until " + path + " is read again",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is missing in: %s", want, w.Body)
		}
	}
	if slots() != 7 || !strings.Contains(log(), "policy changed") || !strings.Contains(log(), "method=PATCH") {
		t.Errorf("%d slots; the log: %s", slots(), log())
	}
	// What the body does not name stays, balances too: one of two tokens is left.
	patch("", "gate: {limits: {rate: {burst: 2}}, shadow: []}")
	if first, second := get(e, "/").Code, get(e, "/").Code; first != 200 || second != 429 {
		t.Errorf("a change mints tokens: %d, %d", first, second)
	}
	if w := patch("", "gate: {shadow: [rate]}"); w.Code != 200 || get(e, "/").Code != 200 {
		t.Errorf("shadow is not on: %d %s", w.Code, w.Body)
	}
	if w := patch("", "gate: {shadow: []}"); w.Code != 200 || get(e, "/").Code != 429 {
		t.Errorf("shadow is not off: %d %s", w.Code, w.Body)
	}
	if got := asked(e, "GET", "/policy", "", "").Body.String(); !strings.Contains(got, "fixed: 7  # PATCH at ") {
		t.Errorf("GET does not say where it comes from:\n%s", got)
	}
	write(t, path, strings.Replace(changeableGate, "max: 50", "max: 51", 1)+"admin_token_file: "+e.settings.Token+"\n")
	e.reload("test")
	if slots() == 7 || !strings.Contains(log(), "changed at run time is undone") {
		t.Errorf("%d slots after the file changed; the log: %s", slots(), log())
	}
}

func TestAChangeThatIsWrongChangesNothing(t *testing.T) {
	e, _, log := changeable(t, changeableGate+"  pools: {db: {limit: {fixed: 3}}}\n")
	before := asked(e, "GET", "/policy", "", "").Body.String()
	for body, want := range map[string]string{
		"gate: {capacity: {limit: {fixed: 0}}}":                 "PATCH at ",
		"gate: {capasity: {}}":                                  "unknown field",
		"gate: {limits: {rate: {burst: x}}}":                    "must be a whole number",
		"gate: {limits: {rate: null}, routes: {/a: {pool: x}}}": `unknown "x"; there are: db`,
		"gate: {name: other}":                                   "",
		"listen: :1":                                            "nothing else",
		"gate: {}\nredis: redis://h":                            "nothing else",
		"":                                                      "nothing else",
		"gate: [":                                               "did not find",
		strings.Repeat("#", 2<<20):                              "larger than",
	} {
		for _, method := range []string{"PATCH", "PUT"} {
			w := asked(e, method, "/policy", "secret", body)
			if w.Code != http.StatusUnprocessableEntity && w.Code != http.StatusBadRequest {
				t.Errorf("%s %.40q: %d %s", method, body, w.Code, w.Body)
			}
			if dry := asked(e, method, "/policy?dry_run=1", "secret", body); dry.Code != w.Code {
				t.Errorf("%s %.40q: %d, a dry run %d", method, body, w.Code, dry.Code)
			}
			if method == "PATCH" && !strings.Contains(w.Body.String(), want) {
				t.Errorf("%.40q: %s, want %s", body, w.Body, want)
			}
		}
	}
	if after := asked(e, "GET", "/policy", "", "").Body.String(); after != before {
		t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
	}
	if !strings.Contains(log(), "change of the policy refused") {
		t.Errorf("the log says nothing: %s", log())
	}
}

func TestPutReplacesTheSection(t *testing.T) {
	e, _, _ := changeable(t, changeableGate)
	w := asked(e, "PUT", "/policy", "secret", "gate: {capacity: {limit: {fixed: 9}}}")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "gate.limits.rate.burst: gone (was 2") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for range 5 {
		if got := get(e, "/").Code; got != 200 {
			t.Errorf("the old limit holds: %d", got)
		}
	}
	if e.settings.Listen == "" || e.inForce.Load().Upstream.URL == "" {
		t.Error("other sections are gone")
	}
}
