package outbound_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/headgate-go/headgate/outbound"
)

// brittle answers 503 with a body that panics when it is read, then 200.
type brittle struct{ sent int }

func (b *brittle) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.sent++; b.sent > 1 {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: b, ContentLength: -1, Request: r}, nil
}

func (*brittle) Read([]byte) (int, error) { panic("the body's own") }
func (*brittle) Close() error             { return nil }

var _ io.ReadCloser = (*brittle)(nil)

// A body that is discarded before a retry is read on no caller's goroutine: its panic
// must not end the process.
func TestABodyThatPanicsIsDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := outbound.MustNew(outbound.Options{Base: new(brittle)})
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://up.test/", nil)
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("got %v, %v; want the retry's answer", resp, err)
		}
	})
}
