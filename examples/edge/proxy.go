package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// base is the transport below everything: connections to the upstream.
func base(u Upstream) *http.Transport {
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: time.Duration(u.DialTimeout)}).DialContext,
		MaxIdleConnsPerHost:   int(u.IdleConns),
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: time.Duration(u.HeaderTimeout),
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true, // answers pass as they are
		ForceAttemptHTTP2:     true,
	}
	if u.H2C {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
		t.Protocols.SetHTTP2(true)
	}
	return t
}

// newProxy is the plain proxy behind the gate.
func newProxy(c Config, transport http.RoundTripper, log *slog.Logger) (*httputil.ReverseProxy, error) {
	addresses, err := caller.NewAddresses(caller.ClientIP{
		Trusted: c.Gate.ClientIP.Trusted, Hops: int(c.Gate.ClientIP.Hops),
		Header: c.Gate.ClientIP.Header, IPv6Bits: int(c.Gate.ClientIP.IPv6Bits),
	})
	if err != nil {
		return nil, err
	}
	if len(c.Gate.ClientIP.Trusted) == 0 && c.Gate.ClientIP.Hops == 0 {
		addresses = nil // nobody is believed, so there is nothing to pass on
	}
	safe := c.Upstream.Retry == retrySafe
	return &httputil.ReverseProxy{
		Transport:  transport,
		BufferPool: &buffers{},
		ErrorLog:   slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(c.Upstream.parsed)
			if c.Upstream.PreserveHost {
				r.Out.Host = r.In.Host
			}
			forward(r, addresses)
		},
		ModifyResponse: func(resp *http.Response) error {
			if err := unasked(resp); err != nil {
				return err
			}
			narrow(resp)
			if safe {
				outbound.Relay(resp.Header, resp, nil)
			}
			return nil
		},
		ErrorHandler: failures{retried: safe}.answer,
	}, nil
}

// forward tells the upstream who is asking. What the client says about that is
// passed on only when a trusted proxy says it. Nil addresses trust nobody.
func forward(r *httputil.ProxyRequest, addresses *caller.Addresses) {
	if addresses != nil {
		if client := addresses.Addr(r.In); client.IsValid() && client != peer(r.In) {
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		}
	}
	r.SetXForwarded()
}

func peer(r *http.Request) netip.Addr {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return at.Addr().Unmap().WithZone("")
}

// failures answer for an upstream that did not. Nothing of the error reaches the
// client.
type failures struct {
	retried bool // the edge has tried again, so that a client need not
}

func (f failures) answer(w http.ResponseWriter, _ *http.Request, err error) {
	status := statusOf(err)
	if p, ok := w.(*patience); ok && p.stalled.Load() {
		status = http.StatusRequestTimeout
	}
	outbound.Relay(w.Header(), nil, err)
	if !f.retried {
		w.Header().Del("Headgate-Retried")
	}
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusRequestTimeout || status == http.StatusRequestEntityTooLarge {
		w.Header().Set("Connection", "close") // the rest of the body is unread
	}
	http.Error(w, strings.ToLower(http.StatusText(status)), status)
}

func statusOf(err error) int {
	var tooLarge *http.MaxBytesError
	var timeout net.Error
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, verdict.ErrLocal):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// buffers is the proxy's pool of copy buffers.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
