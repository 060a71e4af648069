package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// listenHTTP2 serves connections with a raw framer: answer may reset or go away.
func listenHTTP2(t *testing.T, requests *atomic.Int32, answer func(f *http2.Framer, stream uint32) bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go frames(conn, requests, answer)
		}
	}()
	return l.Addr().String()
}

func frames(conn net.Conn, requests *atomic.Int32, answer func(f *http2.Framer, stream uint32) bool) {
	defer conn.Close()
	_, _ = io.CopyN(io.Discard, conn, int64(len(http2.ClientPreface)))
	f := http2.NewFramer(conn, conn)
	_ = f.WriteSettings()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			requests.Add(1)
			if !answer(f, frame.StreamID) {
				_ = conn.(*net.TCPConn).CloseWrite() // what the client still sends must not reset the connection
				_, _ = io.Copy(io.Discard, conn)
				return
			}
		}
	}
}

// The error types of golang.org/x/net/http2 are not those of net/http: with either,
// ENHANCE_YOUR_CALM is a throttle.
//
// Case OU-01: tried on the product, with both implementations of HTTP/2
func TestBothHTTP2ImplementationsSayTheSame(t *testing.T) {
	both := map[string]http.RoundTripper{
		"net/http": &http.Transport{Protocols: unencryptedHTTP2()},
		"x/net/http2": &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, network, addr string, _ *tls.Config) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}},
	}
	for name, base := range both {
		for answer, c := range map[string]struct {
			do   func(f *http2.Framer, stream uint32) bool
			want verdict.Kind
		}{
			"RST_STREAM": {func(f *http2.Framer, stream uint32) bool {
				_ = f.WriteRSTStream(stream, http2.ErrCodeEnhanceYourCalm)
				return true
			}, verdict.Throttled},
			"GOAWAY": {func(f *http2.Framer, stream uint32) bool {
				_ = f.WriteGoAway(stream, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
				return false
			}, verdict.Throttled},
			"GOAWAY, refused": {func(f *http2.Framer, _ uint32) bool {
				_ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil)
				return false
			}, verdict.Throttled},
			"RST_STREAM, internal error": {func(f *http2.Framer, stream uint32) bool {
				_ = f.WriteRSTStream(stream, http2.ErrCodeInternal)
				return true
			}, verdict.Transient},
		} {
			t.Run(name+" "+answer, func(t *testing.T) {
				var requests atomic.Int32
				addr := listenHTTP2(t, &requests, c.do)
				rt := outbound.MustNew(outbound.Options{Base: base, Retry: outbound.RetryOptions{Attempts: 1}})
				resp, err := (&http.Client{Transport: rt}).Get("http://" + addr)
				if err == nil {
					resp.Body.Close()
					t.Fatal("answered")
				}
				o := rt.Stats().Operations[0]
				if o.Ended[c.want] != 1 || outbound.IsThrottle(err) != (c.want == verdict.Throttled) {
					t.Errorf("%v after %d requests: ended %v, throttle %v", err, requests.Load(), o.Ended, outbound.IsThrottle(err))
				}
			})
		}
	}
}

func unencryptedHTTP2() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

func TestTheErrorsOfXNetHTTP2AreKnown(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{http2.StreamError{StreamID: 1, Code: http2.ErrCodeEnhanceYourCalm}, true},
		{http2.StreamError{StreamID: 1, Code: http2.ErrCodeRefusedStream}, false},
		{http2.GoAwayError{ErrCode: http2.ErrCodeEnhanceYourCalm}, true},
		{http2.GoAwayError{ErrCode: http2.ErrCodeNo, DebugData: "ENHANCE_YOUR_CALM"}, false},
		{http2.ConnectionError(http2.ErrCodeEnhanceYourCalm), true},
		{http2.ConnectionError(http2.ErrCodeProtocol), false},
	} {
		if got := outbound.IsThrottle(fmt.Errorf("call: %w", c.err)); got != c.want {
			t.Errorf("%v: throttle is %v", c.err, got)
		}
	}
}
