package edge

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/shed"
)

// started returns an edge before h, without listeners, and its log.
func started(t *testing.T, h http.Handler, file string) (*edge, *bytes.Buffer, string) {
	t.Helper()
	upstream := httptest.NewServer(h)
	t.Cleanup(upstream.Close)
	path := filepath.Join(t.TempDir(), "edge.yaml")
	write(t, path, file)
	log := new(bytes.Buffer)
	e, err := newEdge(source{path: path, upstream: upstream.URL}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	return e, log, path
}

// startedAt returns an edge before the server at url.
func startedAt(t *testing.T, url, text string) *edge {
	t.Helper()
	return before(t, source{path: file(t, text), upstream: url}, io.Discard)
}

// startedLogging is startedAt without a file, and the log.
func startedLogging(t *testing.T, url string) (*edge, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	return before(t, source{upstream: url}, log), log
}

func before(t *testing.T, from source, log io.Writer) *edge {
	t.Helper()
	e, err := newEdge(from, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	return e
}

// file writes text to a file of its own and returns the path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edge.yaml")
	write(t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func get(e *edge, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	e.handler.ServeHTTP(w, r)
	return w
}

func TestAReloadKeepsBalancesAndABadFileKeepsThePolicy(t *testing.T) {
	const file = "gate:\n  limits:\n    rate: {rate: 1/h, burst: 3}\n"
	e, log, path := started(t, says("hello"), file)
	for range 2 {
		if w := get(e, "/"); w.Code != 200 {
			t.Fatalf("status %d", w.Code)
		}
	}
	write(t, path, file+"  level_heder: X\n")
	e.reload("test")
	if !strings.Contains(log.String(), path+":4:3: gate.level_heder") || !strings.Contains(log.String(), "old policy stays") {
		t.Errorf("the log does not say what is wrong with the file: %s", log)
	}
	write(t, path, file+"  capacity: {limit: {fixed: 7}}\n")
	e.reload("test")
	if got := e.gate.Stats().Pools[0].Limit; got != 7 {
		t.Errorf("limit %d after the reload, want 7", got)
	}
	if w := get(e, "/"); w.Code != 200 {
		t.Errorf("the third of a burst of three: %d", w.Code)
	}
	if w := get(e, "/"); w.Code != 429 {
		t.Errorf("status %d for a fourth request: the reload minted tokens", w.Code)
	}
}

// Case ED-06: tried on the product
func TestAReloadIsAllOrNothing(t *testing.T) {
	e, _, path := started(t, says("hello"), "")
	one, two := certificate(t), certificate(t)
	with := func(c pair, rest string) string {
		return fmt.Sprintf("tls: {cert: %q, key: %q}\n%s\n", c.cert, c.key, rest)
	}
	const small, large = "gate: {capacity: {limit: {fixed: 3}}}", "gate: {capacity: {limit: {fixed: 9}}}"
	write(t, path, with(one, small))
	e.reload("test")
	first := e.cert.Load()
	for name, refused := range map[string]string{
		"a policy that is wrong":              with(two, "gate: {capacity: {limit: {fixed: 0}}}"),
		"calls that are wrong":                with(two, large+"\noutbound: {retry: {attempts: -1}}"),
		"a name that cannot change":           with(two, "gate: {name: other, capacity: {limit: {fixed: 9}}}"),
		"a setting of the edge":               with(two, large+"\nstall_timeout: 0s"),
		"a key that is not the certificate's": with(pair{two.cert, one.key}, large),
		"a certificate that is not there":     with(pair{two.cert + "x", two.key}, large),
		"a certificate without its key":       fmt.Sprintf("tls: {cert: %q}\n%s\n", two.cert, large),
		"half a file":                         with(two, large)[:40],
	} {
		write(t, path, refused)
		e.reload("test")
		if e.cert.Load() != first || e.gate.Stats().Pools[0].Limit != 3 {
			t.Errorf("%s: a part is in force: certificate %v, %d slots", name, e.cert.Load() != first, e.gate.Stats().Pools[0].Limit)
		}
	}
	write(t, path, with(two, large))
	e.reload("test")
	if e.cert.Load() == first || e.gate.Stats().Pools[0].Limit != 9 {
		t.Error("a good file is not in force")
	}
}

type pair struct{ cert, key string }

// certificate writes a new one and its key.
func certificate(t *testing.T) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := pair{filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")}
	write(t, p.cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, p.key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return p
}

// A file is empty for a moment when it is written in place.
func TestAnEmptyFileIsNoPolicyToReload(t *testing.T) {
	e, log, path := started(t, says("hello"), "gate: {capacity: {limit: {fixed: 7}}}")
	write(t, path, "")
	e.reload("test")
	if got := e.gate.Stats().Pools[0].Limit; got != 7 || !strings.Contains(log.String(), "is empty") {
		t.Errorf("limit %d: %s", got, log)
	}
}

func TestWhatAReloadDoesNotTouchIsSaid(t *testing.T) {
	e, log, path := started(t, says("hello"), "")
	write(t, path, "listen: :1\nstall_timeout: 1s\noutbound: {name: x}\n")
	e.reload("test")
	for _, field := range []string{"listen", "stall_timeout", "outbound"} {
		if !strings.Contains(log.String(), `"takes effect at the next start" field=`+field) {
			t.Errorf("nothing about %s in: %s", field, log)
		}
	}
}

func TestThePrintedDefaultsAreTheDefaults(t *testing.T) {
	var printed bytes.Buffer
	if err := Run(t.Context(), nil, []string{"-print-defaults"}, &printed, io.Discard); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "edge.yaml")
	write(t, path, printed.String())
	file, err := source{path: path, upstream: "http://127.0.0.1:1"}.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	none, err := source{upstream: "http://127.0.0.1:1"}.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	if file.Outbound.MaxWait != none.Outbound.MaxWait {
		t.Errorf("outbound.max_wait is printed as %v and is %v", file.Outbound.MaxWait, none.Outbound.MaxWait)
	}
	var with, without bytes.Buffer
	for out, args := range map[*bytes.Buffer][]string{
		&with:    {"-check", "-upstream", "http://127.0.0.1:1", "-config", path},
		&without: {"-check", "-upstream", "http://127.0.0.1:1"},
	} {
		if err := Run(t.Context(), nil, args, out, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if with.String() != without.String() || with.Len() == 0 {
		t.Errorf("in force with the printed file:\n%s\nwithout a file:\n%s", &with, &without)
	}
}

func TestCheckPrintsTheNumbersInForce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.yaml")
	write(t, path, `
upstream: {url: "http://127.0.0.1:1"}
gate:
  callers: [{api_key: {header: X-Key, keys: [{key: 0012345, name: acme, plan: 010, at_least: high}]}}]
  limits: {rate: {rate: 120/m, burst: 10, plans: {010: {rate: 5/s, burst: 7}}}}
  capacity: {limit: {fixed: 7}, max_wait: none}
  pools: {db: {limit: {fixed: 3}, max_wait: 1s}}
  routes:
    "GET /export": {level: batch, cost: 5, cap: 2, timeout: 9s, pool: db, rate: {rate: 1/s, burst: 4}}
    "GET /healthz": {exempt: true}
`)
	var out bytes.Buffer
	if err := Run(t.Context(), nil, []string{"-check", "-config", path}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 a second", "7 slots now", "none waits", "pool db", "3 slots now", "1s each",
		"plan 010 ", "5 a second, burst 7 (of rate)", "key acme ", "X-Key with sha256 9e244299…, plan 010, level high or above",
		"level batch, cost 5, at most 2 at once, 9s at most, pool db, own limit 1 a second, burst 4", "exempt",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
}

// Case PO-02: tried on the product
func TestCheckRefusesAPlanThatNoLimitKnows(t *testing.T) {
	path := file(t, "upstream: {url: http://h}\ngate:\n  callers: [{api_key: {header: K, keys: [{key: a, plan: gold}]}}]\n")
	for _, args := range [][]string{{"-check", "-config", path}, {"-config", path}} {
		err := Run(t.Context(), nil, args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), path+":3:57: gate.callers.0.api_key.keys.0.plan: unknown \"gold\"") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestMistakesEndTheProgramAtItsStart(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"upstrem: {}", ":1:1: upstrem: unknown field"},
		{"upstream: {url: localhost}", ":1:17: upstream.url: must be like"},
		{"upstream: {url: http://h}\nidle_timeout: 0s", ":2:15: idle_timeout: must be positive"},
		{"upstream: {url: http://h}\ntls: {cert: a}", ":2:6: tls: cert and key"},
		{"upstream: {url: http://h}\ntls: {cert: a, key: b}", "tls: open a"},
		{"upstream: {url: http://h}\nhttp2: {max_streams: -1}", ":2:22: http2.max_streams: must not be"},
		{"upstream: {url: http://h}\ngate: {capacity: {limit: {fixed: 0}}}", ":2:26: gate.capacity.limit: "},
		{"upstream: {url: http://h}\nredis: nonsense://\ngate: {limits: {rate: {rate: 1/s, burst: 1}}}", ":3:23: gate.limits.rate: redis"},
	} {
		path := filepath.Join(t.TempDir(), "edge.yaml")
		write(t, path, c.file)
		err := Run(t.Context(), nil, []string{"-config", path}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), path) && !strings.HasPrefix(c.want, "tls") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.file, err, c.want)
		}
	}
}

func TestAnUpstreamThatIsAwayIsABadGateway(t *testing.T) {
	e, _, _ := started(t, says(""), "outbound: {retry: {attempts: 1}}")
	e.settings.Upstream.parsed.Host = "127.0.0.1:1" // nobody listens there
	w := get(e, "/")
	if w.Code != 502 || strings.TrimSpace(w.Body.String()) != "bad gateway" {
		t.Errorf("%d %q: want 502, and nothing of the error", w.Code, w.Body)
	}
	if got := e.gate.Stats().InFlight(); got != 0 {
		t.Errorf("%d in flight", got)
	}
}

func TestForwardingFieldsOfStrangersAreNotPassedOn(t *testing.T) {
	shows := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Join(r.Header["X-Forwarded-For"], ", ")+" "+r.Host)
	})
	stranger, _, _ := started(t, shows, "")
	if w := get(stranger, "/", "X-Forwarded-For", "1.2.3.4"); w.Body.String() != "192.0.2.1 example.com" {
		t.Errorf("the upstream was told %q", w.Body)
	}
	behind, _, _ := started(t, shows, "gate: {client_ip: {trusted: [192.0.2.0/24]}}")
	if w := get(behind, "/", "X-Forwarded-For", "1.2.3.4"); w.Body.String() != "1.2.3.4, 192.0.2.1 example.com" {
		t.Errorf("behind a trusted proxy the upstream was told %q", w.Body)
	}
}

func TestRoutesOfTheFileAreRanked(t *testing.T) {
	e, _, _ := started(t, says("hello"), "gate:\n  routes:\n    \"GET /healthz\": {exempt: true}\n    \"GET /x\": {level: critical}\n")
	get(e, "/healthz")
	get(e, "/x")
	stats := e.gate.Stats()
	if stats.Count(shed.Exempt) != 1 || stats.Visits[3][shed.Admitted] != 1 {
		t.Errorf("visits %v", stats.Visits)
	}
}
