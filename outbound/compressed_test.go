package outbound_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// coded returns text in a content coding.
func coded(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		w = gzip.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "raw":
		w, _ = flate.NewWriter(&b, flate.DefaultCompression)
	default:
		return text
	}
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const spent = `{"error":{"code":"insufficient_quota"}}`

// Case OU-02: tried on the product
func TestACompressedErrorIsUnderstood(t *testing.T) {
	for _, c := range []struct {
		encoding, coding string // the header's name of it, and what it is
		want             verdict.Kind
	}{
		{"", "", verdict.QuotaExhausted},
		{"identity", "", verdict.QuotaExhausted},
		{"gzip", "gzip", verdict.QuotaExhausted},
		{"GZIP", "gzip", verdict.QuotaExhausted},
		{"x-gzip", "gzip", verdict.QuotaExhausted},
		{"deflate", "zlib", verdict.QuotaExhausted},
		{"deflate", "raw", verdict.QuotaExhausted},
		{"identity, gzip", "gzip", verdict.QuotaExhausted},
		{"br", "gzip", verdict.Throttled},    // beyond the standard library: the status decides
		{"gzip", "", verdict.QuotaExhausted}, // a header that lies
		{"gzip,gzip,gzip,gzip", "gzip", verdict.Throttled},
	} {
		bubble(t, c.encoding+" "+c.coding, func(t *testing.T) {
			want := coded(t, c.coding, spent)
			attempts := 0
			base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				attempts++
				w.Header().Set("Content-Encoding", c.encoding)
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, want)
			})
			rt := outbound.MustNew(outbound.Options{Base: base, Classify: []outbound.Classifier{outbound.Bodies}})
			req := newRequest(t, "http://service.test/")
			req.Header.Set("Accept-Encoding", "gzip") // so that net/http leaves the body as it is
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if string(got) != want || err != nil {
				t.Errorf("the caller read %q, %v", got, err)
			}
			if o := operation(t, rt); o.Ended[c.want] != uint64(attempts) || (attempts == 1) != (c.want == verdict.QuotaExhausted) {
				t.Errorf("%d attempts, %v", attempts, o.Ended)
			}
		})
	}
}

// A few kilobytes may stand for gigabytes.
func TestACompressedErrorIsReadWithinBounds(t *testing.T) {
	bomb := coded(t, "gzip", coded(t, "gzip", strings.Repeat("\x00", 8<<20)))
	resp := answer(nil, 429, "Content-Encoding", "gzip, gzip")
	resp.Body = io.NopCloser(strings.NewReader(bomb))
	looked := -1
	look := outbound.Peek(400, func(_ *http.Response, body []byte) (verdict.Verdict, bool) {
		looked = len(body)
		return verdict.Verdict{}, false
	})
	start := time.Now()
	if v := verdictOf(resp, look); v.Kind != verdict.Throttled || looked < 0 || looked > 16<<10 {
		t.Errorf("%+v after a look at %d bytes in %v", v, looked, time.Since(start))
	}
	if left, _ := io.ReadAll(resp.Body); string(left) != bomb {
		t.Errorf("%d bytes left of %d", len(left), len(bomb))
	}
}

// Half a stream is as good as the text in it: a body may be longer than the look.
func TestABeginningOfACompressedErrorIsUnderstood(t *testing.T) {
	half := coded(t, "gzip", `<Error><Code>SlowDown</Code>`+strings.Repeat(" ", 100)+`</Error>`)
	resp := answer(nil, 400, "Content-Encoding", "gzip")
	resp.Body = io.NopCloser(strings.NewReader(half[:len(half)-8])) // without its checksum
	if v := verdictOf(resp, outbound.Bodies); v.Kind != verdict.Throttled {
		t.Errorf("%+v", v)
	}
}
