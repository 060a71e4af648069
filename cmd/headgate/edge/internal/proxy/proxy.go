// Package proxy is what the edge does with a request that was admitted: it bounds how
// long a client may take, filters what a client says about protocols and about itself,
// passes the request on, and answers where the upstream did not.
package proxy

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/logs"
	"github.com/headgate-go/headgate/outbound"
)

// Options configure the handler.
type Options struct {
	Upstream     *url.URL
	PreserveHost bool              // pass the client's Host on
	Transport    http.RoundTripper // to the upstream
	Upgrades     []string          // protocols a connection may switch to
	Stall        time.Duration     // longest wait for a piece of a body
	MaxBody      int64             // 0: any
	BodyRate     int64             // bytes a second that a body brings at least; 0: any
	Underscores  bool              // pass fields on that have one in their names
	Retried      bool              // the transport repeats what may be repeated, so that a client need not
	InForce      func() InForce    // asked once a request
	Log          *slog.Logger
}

// InForce is what a reload changes.
type InForce struct {
	Addresses    *caller.Addresses
	AddressField string   // canonical name of the field that addresses are read from
	Methods      bool     // some rule tells methods apart: a field may not name another
	Credentials  []string // canonical names of what a preflight has no use for
}

// New returns the handler inside of the gate.
func New(o Options) http.Handler {
	failures := &failures{retried: o.Retried, upstream: o.Upstream.Redacted(), log: logs.NewOften(o.Log, 10*time.Second)}
	proxy := &httputil.ReverseProxy{
		Transport:  o.Transport,
		BufferPool: &buffers{},
		ErrorLog:   slog.NewLogLogger(failures.log.Handler("proxy"), slog.LevelWarn),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(o.Upstream)
			if o.PreserveHost {
				r.Out.Host = r.In.Host
			}
			if b, ok := r.In.Body.(*body); ok && r.Out.Body != nil {
				r.Out.Body = sent{r.Out.Body, b}
			}
			r.Out.Trailer = nil // the copy has the names, and never the values
			forward := forward{o.InForce(), o.Underscores}
			forward.apply(r.In, r.Out.Header)
			forward.disclaim(r.Out)
		},
		ModifyResponse: func(resp *http.Response) error {
			if err := sane(resp); err != nil {
				return err
			}
			narrow(resp)
			finish(resp)
			if o.Retried {
				outbound.Relay(resp.Header, resp, nil)
			}
			return nil
		},
		ErrorHandler: failures.answer,
	}
	return guard{newProtocols(o.Upgrades).limit(proxy), o.Stall, o.MaxBody, o.BodyRate}
}

// sane reports an answer that cannot be passed on: net/http panics of a status that has
// no three digits, and a switch of protocols needs to have been asked for.
func sane(resp *http.Response) error {
	if resp.StatusCode < 100 || resp.StatusCode > 999 {
		return &nonsense{fmt.Sprintf("status %03d", resp.StatusCode)}
	}
	return unasked(resp)
}

// nonsense is an answer that no HTTP server gives.
type nonsense struct{ what string }

func (e *nonsense) Error() string { return "the upstream answered with " + e.what }

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
