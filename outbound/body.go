package outbound

import (
	"io"
	"net/http"
	"sync/atomic"
)

// ender is told once that a response is done with.
type ender interface{ end() }

// heldBody is a response's body that holds something (a slot, a context) until it
// is read to its end, fails, or is closed.
type heldBody struct {
	io.ReadCloser
	held  ender
	ended atomic.Bool
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.finish()
	}
	return n, err
}

func (b *heldBody) Close() error {
	err := b.ReadCloser.Close()
	b.finish()
	return err
}

func (b *heldBody) finish() {
	if !b.ended.Swap(true) {
		b.held.end()
	}
}

// switchedBody is the body of a 101: a connection to write to as well.
type switchedBody struct {
	*heldBody
	io.Writer
}

// hold makes resp hold h until its body is done with, and ends h at once when there
// is no body to wait for.
func hold(resp *http.Response, b *heldBody) {
	if resp.Body == nil || resp.Body == http.NoBody {
		b.finish()
		return
	}
	b.ReadCloser = resp.Body
	resp.Body = b
	if w, ok := b.ReadCloser.(io.Writer); ok && resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = switchedBody{heldBody: b, Writer: w}
	}
}

// closeBody closes a request's body, as a RoundTripper must even when it sends
// nothing.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
