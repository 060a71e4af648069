package pages

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/admissiontest"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/shed"
)

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })

func TestClientsAreFoundBehindProxies(t *testing.T) {
	for name, c := range map[string]struct {
		peer, header, value, want string
	}{
		"direct":   {"203.0.113.9:1", "X-Forwarded-For", "1.1.1.1", "203.0.113.9"},
		"listed":   {"10.0.0.1:1", "X-Forwarded-For", "1.1.1.1, 203.0.113.9, 10.2.0.1", "203.0.113.9"},
		"counted":  {"192.0.2.200:1", "X-Forwarded-For", "1.1.1.1, 203.0.113.9, 192.0.2.100", "203.0.113.9"},
		"standard": {"10.0.0.1:1", "Forwarded", `for=1.1.1.1, for="[2001:db8::7]:80";proto=https`, "2001:db8::/64"},
		"single":   {"10.0.0.1:1", "X-Real-Ip", "203.0.113.9", "203.0.113.9"},
		"socket":   {"@", "X-Forwarded-For", "203.0.113.9", "203.0.113.9"},
	} {
		t.Run(name, func(t *testing.T) {
			addresses, err := caller.NewAddresses(behindProxies()[name])
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.peer
			r.Header.Set(c.header, c.value)
			if name == "socket" {
				r = r.WithContext(withLocalAddr(r, &net.UnixAddr{Name: "/run/app.sock", Net: "unix"}))
			}
			if got := addresses.Key(r); got != c.want {
				t.Errorf("client %s, want %s", got, c.want)
			}
		})
	}
}

func TestTheGatewaysCallersHaveBucketsOfTheirOwn(t *testing.T) {
	h := byGateway().Handler(ok)
	send := func(user string) int {
		r := httptest.NewRequest("GET", "/", nil)
		if user != "" {
			r.Header.Set("X-User-ID", user)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	count := func(user string) (n int) {
		for range 60 {
			if send(user) == http.StatusOK {
				n++
			}
		}
		return n
	}
	if nobody, ann := count(""), count("ann"); nobody >= 60 || ann != 60 {
		t.Errorf("anonymous %d, ann %d of 60", nobody, ann)
	}
}

// TestDeadlineAndLevelArePassedOn sends a call from one service to the next.
func TestDeadlineAndLevelArePassedOn(t *testing.T) {
	gate := passedOn()
	var timeout, level string
	service := httptest.NewServer(gate.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		timeout, level = r.Header.Get("X-Timeout"), r.Header.Get("X-Level")
		if _, ok := r.Context().Deadline(); !ok {
			t.Error("no deadline behind the gate")
		}
	})))
	defer service.Close()
	front := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	ctx, cancel := inAMinute(r)
	defer cancel()
	relaying(payments(nil), service.URL)(front, r.WithContext(ctx))
	if front.Code != http.StatusOK || timeout == "" || level != "batch" {
		t.Errorf("status %d, X-Timeout %q, X-Level %q", front.Code, timeout, level)
	}
}

func TestARefusalIsRelayedOnce(t *testing.T) {
	full := httptest.NewServer(admissiontest.Refuse(shed.DeadlineUnmeetable).Handler(ok))
	defer full.Close()
	front := httptest.NewRecorder()
	relaying(shortest(), full.URL)(front, httptest.NewRequest("GET", "/", nil))
	if front.Code != http.StatusServiceUnavailable || front.Header().Get("Headgate-Retried") == "" {
		t.Errorf("status %d, headers %v", front.Code, front.Header())
	}
	again := outbound.Classify(front.Result(), nil)
	if !again.Final {
		t.Errorf("the next hop would try again: %+v", again)
	}
}

func TestShadowLetsEverybodyThrough(t *testing.T) {
	h := trying().Handler(ok)
	for range 150 {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != http.StatusOK {
			t.Fatalf("status %d", w.Code)
		}
	}
}

func TestRoutesAreServed(t *testing.T) {
	gate := admission.MustNew(admission.Options{Pools: map[string]admission.Pool{"farm": {Limit: shed.Fixed(2)}}})
	mux := routes(gate, ok, ok, ok)
	for _, target := range []string{"GET /search", "GET /export", "POST /render", "GET /report"} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, httptest.NewRequest(method, path, nil)); w.Code != http.StatusOK {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

// show prints a response as it is on the wire.
func show(h http.Handler, accept string) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	resp := w.Result()
	fmt.Printf("HTTP/1.1 %d %s\n", resp.StatusCode, http.StatusText(resp.StatusCode))
	var b bytes.Buffer
	resp.Header.Write(&b)
	io.Copy(os.Stdout, strings.NewReader(strings.ReplaceAll(b.String(), "\r\n", "\n")))
	fmt.Println()
	io.Copy(os.Stdout, resp.Body)
}

func Example_tooMuch() {
	show(&admission.Rejection{Reason: shed.RateLimited, RetryAfter: 1500e6, Policy: "tenant"}, "application/json")
	// Output:
	// HTTP/1.1 429 Too Many Requests
	// Cache-Control: no-store
	// Content-Length: 261
	// Content-Type: application/problem+json
	// Headgate-Reason: rate-limited
	// Retry-After: 2
	// X-Content-Type-Options: nosniff
	//
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded","status":429,"detail":"More requests than this caller's limit allows. Retry-After says when to try again.","reason":"rate-limited","violated-policies":["tenant"]}
}

func Example_tooBusy() {
	show(admissiontest.Refuse(shed.QueueFull).Handler(ok), "text/plain")
	// Output:
	// HTTP/1.1 503 Service Unavailable
	// Cache-Control: no-store
	// Content-Length: 95
	// Content-Type: text/plain; charset=utf-8
	// Headgate-Reason: queue-full
	// Retry-After: 1
	// X-Content-Type-Options: nosniff
	//
	// The service is at capacity and did not start this request. Retry-After says when to try again.
}
