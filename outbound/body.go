package outbound

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/headgate-go/headgate/outbound/verdict"
)

// heldBody is a response's body that holds something (a slot, a context) until it
// is read to its end, fails, or is closed.
type heldBody struct {
	io.ReadCloser
	held  interface{ end() } // called once
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

// hold makes resp hold b's holder until its body is done with, and ends it at once
// when there is no body to wait for.
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

const (
	mostDrained  = 64 << 10
	drainTimeout = 250 * time.Millisecond
)

// discard is done with resp: it reads a little of what is left, so that the
// connection can be used again, and closes it. Bytes and time are bounded, because
// an error's body may never end: a connection lost is cheaper than a call stuck.
func discard(resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	if resp.ContentLength > mostDrained {
		_ = resp.Body.Close()
		return
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer func() { _ = recover() }() // nothing above could; a body that panics is closed as one that ends
		_, _ = io.CopyN(io.Discard, resp.Body, mostDrained)
	}()
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	}
	_ = resp.Body.Close() // and ends the read, if it is still on
}

// mostPeeked bounds the look into a body.
const mostPeeked = 16 << 10

// Peek returns a Classifier that shows look the beginning of a body, at most 16 KiB
// of it, and puts it back, so that the caller reads it whole. It is asked about
// statuses of at least the given one: 400 for errors, 200 for APIs that report errors
// with it. look gets the text without its content coding if that is gzip or deflate;
// other codings, such as br, are beyond the standard library, and look gets the bytes.
// A body that is slow to come holds the call up, until the request's context ends.
func Peek(status int, look func(resp *http.Response, body []byte) (verdict.Verdict, bool)) Classifier {
	return func(resp *http.Response, err error) (verdict.Verdict, bool) {
		if err != nil || resp == nil || resp.StatusCode < status || resp.Body == nil || resp.Body == http.NoBody {
			return verdict.Verdict{}, false
		}
		beginning, err := io.ReadAll(io.LimitReader(resp.Body, mostPeeked))
		resp.Body = restored(beginning, resp.Body, err)
		return look(resp, verdict.Plain(resp.Header, beginning, mostPeeked))
	}
}

// peekedBody is a body of which the beginning has been read.
type peekedBody struct {
	io.Reader
	io.Closer
}

func restored(beginning []byte, rest io.ReadCloser, err error) io.ReadCloser {
	var after io.Reader = rest
	if err != nil {
		after = failedReader{err}
	}
	return peekedBody{io.MultiReader(bytes.NewReader(beginning), after), rest}
}

// failedReader repeats the error that ended the look.
type failedReader struct{ err error }

func (r failedReader) Read([]byte) (int, error) { return 0, r.err }
