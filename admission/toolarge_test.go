package admission_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
)

// A body above the handler's bound is answered at once with 413 and Connection: close,
// as without the gate, although the client sends no more until it has the answer.
//
// Case GA-07: golang/go#73754
func TestBodiesThatAreTooLongAreAnsweredAtOnce(t *testing.T) {
	tooLong := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1024)); err != nil {
			http.Error(w, "too long", http.StatusRequestEntityTooLarge)
		}
	})
	wrapped := admission.MustNew(admission.Options{})
	as := admission.MustNew(admission.Options{HTTP: admission.HTTP{DisableResponseWrapping: true}})
	for name, h := range map[string]http.Handler{"no gate": tooLong, "gate": wrapped.Handler(tooLong), "unwrapped": as.Handler(tooLong)} {
		for kind, head := range map[string]string{"length": "Content-Length: 204800\r\n\r\n", "chunked": "Transfer-Encoding: chunked\r\n\r\n32000\r\n"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWire(t, h, nil)
					conn, err := w.dial(t.Context(), "", "")
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					go fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: service\r\n%s%s", head, strings.Repeat("x", 2048))
					_ = conn.SetReadDeadline(time.Now().Add(time.Second))
					start := time.Now()
					res, err := http.ReadResponse(bufio.NewReader(conn), nil)
					if err != nil {
						t.Fatalf("no answer after %v: %v", time.Since(start), err)
					}
					if res.StatusCode != 413 || !res.Close || time.Since(start) != 0 {
						t.Errorf("%d, closes: %v, after %v; want 413, at once, and a close", res.StatusCode, res.Close, time.Since(start))
					}
				})
			})
		}
	}
}

// A 413 about no body keeps the connection, and so does one that a handler says so of.
func TestOtherAnswersKeepTheConnection(t *testing.T) {
	for name, c := range map[string]struct {
		method, body, connection string
		status, major            int
		want                     string
	}{
		"no body":      {"GET", "", "", 413, 1, ""},
		"HTTP/2":       {"POST", "x", "", 413, 2, ""},
		"other status": {"POST", "x", "", 400, 1, ""},
		"its own":      {"POST", "x", "keep-alive", 413, 1, "keep-alive"},
		"too long":     {"POST", "x", "", 413, 1, "close"},
	} {
		h := admission.MustNew(admission.Options{}).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.connection != "" {
				w.Header().Set("Connection", c.connection)
			}
			w.WriteHeader(c.status)
		}))
		r := request(c.method, "/")
		if r.ProtoMajor = c.major; c.body != "" {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(c.body)), 1
		}
		if got := do(h, r).Header().Get("Connection"); got != c.want {
			t.Errorf("%s: Connection = %q, want %q", name, got, c.want)
		}
	}
}
