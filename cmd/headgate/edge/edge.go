package edge

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/logs"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/proxy"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/store"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/upstream"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/policy"
)

// edge is the running proxy.
type edge struct {
	source   source
	log      *slog.Logger
	often    *logs.Often // what a stranger can cause to be logged
	gate     *admission.Gate
	outbound *outbound.Transport
	store    *store.Store // the shared limits, if any
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	reloads  *prometheus.CounterVec
	received prometheus.Counter
	handler  http.Handler // what clients meet

	adopting sync.Mutex               // one configuration at a time
	changed  bool                     // the one in force is not the file's; guarded by adopting
	settings *settings                // at the start: what a reload does not touch
	inForce  atomic.Pointer[settings] // after the last reload
	cert     atomic.Pointer[tls.Certificate]
	leaving  atomic.Bool // told to stop: not ready
}

// newEdge builds everything that does not listen yet.
func newEdge(from source, log *slog.Logger) (*edge, error) {
	c, err := from.load(nil)
	if err != nil {
		return nil, err
	}
	e := &edge{
		source: from, log: log, often: logs.NewOften(log, time.Second),
		store: store.New(log), registry: prometheus.NewRegistry(), settings: c,
	}
	e.count()
	if err := e.build(c); err != nil {
		e.close()
		return nil, err
	}
	e.store.Adopt()
	e.inForce.Store(c)
	return e, nil
}

// count makes the metrics.
func (e *edge) count() {
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	e.metrics = metrics.New(e.registry)
	e.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "headgate_edge_reloads_total", Help: "Times the configuration was read again, by result.",
	}, []string{"result"})
	e.received = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "headgate_edge_received_total", Help: "Requests received; headgate_requests_total, once they have ended, adds up to it.",
	})
	e.registry.MustRegister(e.reloads, e.received)
}

func (e *edge) build(c *settings) error {
	cert, err := c.TLS.load()
	if err != nil {
		return err
	}
	e.cert.Store(cert)
	resources := e.resources()
	opts, err := c.GateOptions(resources)
	if err != nil {
		return c.doc.At(err)
	}
	c.derive()
	if e.gate, err = admission.New(opts); err != nil {
		return err
	}
	if e.outbound, err = e.transport(c, resources); err != nil {
		return err
	}
	e.handler = e.chain(c)
	return nil
}

// transport is the way to the upstream: the file's section outbound, and what the edge
// makes of answers.
func (e *edge) transport(c *settings, resources policy.Resources) (*outbound.Transport, error) {
	out, err := c.OutboundOptions(resources)
	if err != nil {
		return nil, c.doc.At(err)
	}
	signals := &upstream.Signals{
		Overload: c.Upstream.Signals.Overload, Throttle: c.Upstream.Signals.Throttle, Retry: c.Upstream.Retry,
	}
	out.Base = c.Upstream.connections().Transport()
	out.Key = upstream.Key(c.Upstream.Signals.Throttle)
	out.Classify = []outbound.Classifier{signals.Judge}
	out.Retry.MaxElapsed = cmp.Or(out.Retry.MaxElapsed, time.Duration(c.Outbound.MaxWait))
	return outbound.New(out)
}

// chain is the way of a request: answers in gRPC for those who speak it, the count of
// requests, the gate, and what package proxy does inside of it.
func (e *edge) chain(c *settings) http.Handler {
	inner := proxy.New(proxy.Options{
		Upstream: c.Upstream.parsed, PreserveHost: c.Upstream.PreserveHost, Transport: e.outbound,
		Upgrades: c.upgrades(), Stall: c.stall(), MaxBody: int64(c.MaxBody), BodyRate: c.bodyRate(),
		Underscores: c.underscores(), Retried: c.Upstream.Retry == upstream.RetrySafe,
		InForce: func() proxy.InForce { return e.inForce.Load().derived }, Log: e.log,
	})
	if c.Upstream.Signals.Throttle == upstream.ThrottleRoute {
		inner = upstream.Routes(func() *http.ServeMux { return e.inForce.Load().patterns }, inner)
	}
	return proxy.GRPC(e.goodbye(e.gate.Handler(inner)))
}

func (e *edge) resources() policy.Resources {
	return policy.Resources{Shared: e.store.Limit, Observer: e.metrics, OutboundObserver: e.metrics.Outbound()}
}

// goodbye counts requests and, once the edge is leaving, asks clients to
// go elsewhere with their next one. HTTP/2 makes a GOAWAY of it.
func (e *edge) goodbye(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.received.Inc()
		if e.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// load reads the certificate; nil without one.
func (files TLS) load() (*tls.Certificate, error) {
	if files.Cert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	return &cert, nil
}

// close gives back what is not the servers'.
func (e *edge) close() {
	e.gate.Close()
	e.store.Close()
	if e.outbound != nil {
		e.outbound.CloseIdleConnections()
	}
}
