package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/upstream"
)

// body is the request's body: each read has the time of one stall, all of them together
// what the least rate allows and one stall more, and none outlives the request's deadline,
// or its handler. Without a least rate a client could hold a slot for a byte now and then.
// The transport reads on a
// goroutine of its own, which may still do so when the upstream has long answered,
// and net/http sends nothing during a read: without an end to the read, an
// early answer would wait for the client's next byte.
type body struct {
	io.ReadCloser
	*patience

	mu      sync.Mutex // so that no deadline is set once the connection serves another request
	reading bool
	began   time.Time     // the read under way
	waited  time.Duration // for the client, in the reads before
	came    int64         // bytes
	free    bool          // the answer has begun: a client may be silent
	over    bool          // the handler has returned
}

func (b *body) Read(p []byte) (int, error) {
	if !b.begin() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	b.end(n, err)
	if err != nil && err != io.EOF {
		err = &upstream.ClientFault{Err: err}
	}
	return n, err
}

// begin sets the end of a read, and says whether there may be one.
func (b *body) begin() bool {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return false
	}
	b.reading, b.began = true, now
	if !b.free {
		_ = b.control.SetReadDeadline(b.until(now))
	}
	return true
}

// until returns the end of a read that begins now.
func (b *body) until(now time.Time) time.Time {
	left := b.stall
	if b.rate > 0 {
		earned := time.Duration(float64(b.came) / float64(b.rate) * float64(time.Second))
		left = min(left, b.stall+earned-b.waited)
	}
	until := now.Add(left)
	if b.bounded && b.deadline.Before(until) {
		return b.deadline
	}
	return until
}

// lift ends the time limit of reads. Once the answer of an HTTP/2 stream has begun, both
// sides talk when they like: the silence of a client that has nothing to say, in a gRPC
// stream or a long poll of messages, is no stall.
func (b *body) lift() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.free = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
}

func (b *body) end(n int, err error) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	b.waited += now.Sub(b.began)
	b.came += int64(n)
	switch {
	case b.over:
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.stalled.Store(true)
	default:
		_ = b.control.SetReadDeadline(time.Time{})
	}
}

// abandon ends a read that is under way. There will be no other.
func (b *body) abandon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.reading {
		_ = b.control.SetReadDeadline(time.Unix(1, 0))
	}
}

// sent is the body as the transport has it. The proxy keeps the transport from closing the
// request's own body, and a transport that has lost its connection waits for the read that
// is under way: without an end to it, the answer of a silent client would never end.
type sent struct {
	io.ReadCloser
	request *body
}

func (s sent) Close() error {
	s.request.abandon()
	return s.ReadCloser.Close()
}

type bodyKey struct{}

// finish ends the reading of the request with the end of its answer. The transport closes
// an answer of HTTP/2, which is what brings its trailers, only when it has done with the
// request: with a client that waits for them before it closes its own side, that is never.
func finish(resp *http.Response) {
	if b, ok := resp.Request.Context().Value(bodyKey{}).(*body); ok {
		resp.Body = &answer{resp.Body, b}
	}
}

// answer is the body of an answer whose end ends the request.
type answer struct {
	io.ReadCloser
	request *body
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil {
		a.request.abandon()
	}
	return n, err
}

func (a *answer) Close() error {
	a.request.abandon()
	return a.ReadCloser.Close()
}
