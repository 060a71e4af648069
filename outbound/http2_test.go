package outbound_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
)

// Frames of HTTP/2, by their numbers.
const (
	frameHeaders   = 1
	frameRSTStream = 3
	frameSettings  = 4
	frameGoAway    = 7

	calm    = 11 // ENHANCE_YOUR_CALM
	inError = 2  // INTERNAL_ERROR
)

func writeFrame(w io.Writer, kind, flags byte, stream uint32, payload ...uint32) {
	f := binary.BigEndian.AppendUint32(nil, uint32(4*len(payload))<<8|uint32(kind))
	f = append(f, flags)
	f = binary.BigEndian.AppendUint32(f, stream)
	for _, p := range payload {
		f = binary.BigEndian.AppendUint32(f, p)
	}
	_, _ = w.Write(f)
}

// queued writes to a pipe from a goroutine of its own: neither end of a pipe may wait
// for the other while both write.
type queued struct {
	net.Conn
	frames chan []byte
	done   chan struct{}
}

func newQueued(conn net.Conn) *queued {
	q := &queued{Conn: conn, frames: make(chan []byte, 64), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		for f := range q.frames {
			_, _ = conn.Write(f)
		}
	}()
	return q
}

func (q *queued) Write(p []byte) (int, error) {
	q.frames <- p
	return len(p), nil
}

func (q *queued) Close() error {
	close(q.frames)
	go func() { _, _ = io.Copy(io.Discard, q.Conn) }()
	<-q.done
	return q.Conn.Close()
}

// serveHTTP2 answers each request on conn with answer, which returns false to close it.
func serveHTTP2(conn net.Conn, answer func(stream uint32) bool) {
	defer conn.Close()
	if _, err := io.CopyN(io.Discard, conn, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	writeFrame(conn, frameSettings, 0, 0)
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head[:4])>>8)); err != nil {
			return
		}
		switch {
		case head[3] == frameSettings && head[4] == 0:
			writeFrame(conn, frameSettings, 1, 0)
		case head[3] == frameHeaders && !answer(binary.BigEndian.Uint32(head[5:])):
			return
		}
	}
}

// overHTTP2 is an http.Transport that speaks HTTP/2 to a server made of answer.
func overHTTP2(t *testing.T, requests *atomic.Int32, answer func(conn net.Conn, stream uint32) bool) *http.Transport {
	base := &http.Transport{Protocols: new(http.Protocols)}
	base.Protocols.SetUnencryptedHTTP2(true)
	base.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, far := net.Pipe()
		server := newQueued(far)
		go serveHTTP2(server, func(stream uint32) bool {
			requests.Add(1)
			return answer(server, stream)
		})
		t.Cleanup(func() { client.Close() })
		return client, nil
	}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

func resets(code uint32) func(net.Conn, uint32) bool {
	return func(conn net.Conn, stream uint32) bool {
		writeFrame(conn, frameRSTStream, 0, stream, code)
		return true
	}
}

func goesAway(code uint32, last func(stream uint32) uint32) func(net.Conn, uint32) bool {
	return func(conn net.Conn, stream uint32) bool {
		writeFrame(conn, frameGoAway, 0, 0, last(stream), code)
		return false
	}
}

func taken(stream uint32) uint32 { return stream }
func refused(uint32) uint32      { return 0 }

// Case OU-01: tried on the product
func TestEnhanceYourCalmIsAThrottle(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(net.Conn, uint32) bool
		want   verdict.Kind
	}{
		{"RST_STREAM", resets(calm), verdict.Throttled},
		{"GOAWAY after the request was taken", goesAway(calm, taken), verdict.Throttled},
		{"GOAWAY that refuses the first request", goesAway(calm, refused), verdict.Throttled},
		{"RST_STREAM for another reason", resets(inError), verdict.Transient},
		{"GOAWAY for another reason", goesAway(inError, taken), verdict.Transient},
		{"GOAWAY that refuses for another reason", goesAway(inError, refused), verdict.Transient},
	} {
		bubble(t, c.name, func(t *testing.T) {
			var requests atomic.Int32
			rt := outbound.MustNew(outbound.Options{
				Base: overHTTP2(t, &requests, c.answer), Rate: ratelimit.PerKey(100, 10), CountResends: true,
				Retry: outbound.RetryOptions{Attempts: 1},
			})
			_, _, err := get(t, t.Context(), rt)
			if err == nil {
				t.Fatal("answered")
			}
			o := operation(t, rt)
			throttle := c.want == verdict.Throttled
			if o.Ended[c.want] != 1 || outbound.IsThrottle(err) != throttle || outbound.IsConclusive(err) {
				t.Errorf("%v (%T): ended %v, throttle %v", err, errors.Unwrap(err), o.Ended, outbound.IsThrottle(err))
			}
			if (o.Multiplier < 1) != throttle || int32(o.Attempts) != requests.Load() {
				t.Errorf("×%v, %d attempts charged for %d requests", o.Multiplier, o.Attempts, requests.Load())
			}
		})
	}
}

// net/http sends a request again by itself when a GOAWAY did not take it, and shows
// nothing of the code: the resend is charged, the rate stays.
func TestWhatHTTP2SendsAgainIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		base := overHTTP2(t, &requests, func(conn net.Conn, stream uint32) bool {
			if stream > 1 {
				return goesAway(calm, func(uint32) uint32 { return 1 })(conn, stream)
			}
			_, _ = conn.Write([]byte{0, 0, 1, frameHeaders, 0x4 | 0x1, 0, 0, 0, 1, 0x88}) // :status 200
			return true
		})
		rt := outbound.MustNew(outbound.Options{Base: base, Rate: ratelimit.PerKey(100, 10), CountResends: true})
		for range 2 {
			if status, _, err := get(t, t.Context(), rt); err != nil || status != 200 {
				t.Fatal(status, err)
			}
		}
		if o := operation(t, rt); requests.Load() != 3 || o.Attempts != 3 || o.Resends != 1 || o.Multiplier != 1 {
			t.Errorf("%d requests, %+v", requests.Load(), o)
		}
	})
}

func TestACalmedCallWaitsBeforeItReturns(t *testing.T) {
	for range 100 { // the backoff is drawn
		synctest.Test(t, func(t *testing.T) {
			var requests atomic.Int32
			var at []time.Time
			base := overHTTP2(t, &requests, func(conn net.Conn, stream uint32) bool {
				at = append(at, time.Now())
				return resets(calm)(conn, stream)
			})
			rt := outbound.MustNew(outbound.Options{Base: base, Rate: ratelimit.PerKey(1e4, 100), Retry: outbound.RetryOptions{Attempts: 2}})
			if _, _, err := get(t, t.Context(), rt); !outbound.IsThrottle(err) || len(at) != 2 {
				t.Fatal(err, len(at))
			}
			if gap := at[1].Sub(at[0]); gap < 100*time.Millisecond {
				t.Errorf("sent again after %v", gap)
			}
		})
	}
}

// A stream that was reset may have been worked on.
func TestAResetPostIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		rt := outbound.MustNew(outbound.Options{Base: overHTTP2(t, &requests, resets(calm))})
		resp, err := (&http.Client{Transport: rt}).Post("http://service.test/", "text/plain", strings.NewReader("x"))
		if err == nil {
			resp.Body.Close()
			t.Fatal("answered")
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}
