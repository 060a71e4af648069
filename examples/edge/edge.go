package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/metrics"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/policy"
)

// edge is the running proxy.
type edge struct {
	source   source
	log      *slog.Logger
	gate     *admission.Gate
	outbound *outbound.Transport
	store    *store // the shared limits, if any
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	reloads  *prometheus.CounterVec
	received prometheus.Counter
	handler  http.Handler // what clients meet

	settings atomic.Pointer[settings]        // in force
	cert     atomic.Pointer[tls.Certificate] // nil: no TLS
	leaving  atomic.Bool                     // told to stop: not ready
}

// newEdge builds everything that does not listen yet.
func newEdge(from source, log *slog.Logger) (*edge, error) {
	c, err := from.load()
	if err != nil {
		return nil, err
	}
	e := &edge{source: from, log: log, store: newStore(log), registry: prometheus.NewRegistry()}
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	e.metrics = metrics.New(e.registry)
	e.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "headgate_edge_reloads_total", Help: "Times the configuration was read again, by result.",
	}, []string{"result"})
	e.received = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "headgate_edge_received_total", Help: "Requests received; headgate_requests_total, once they have ended, adds up to it.",
	})
	e.registry.MustRegister(e.reloads, e.received)
	if err := e.build(c); err != nil {
		e.close()
		return nil, err
	}
	e.settings.Store(c)
	return e, nil
}

func (e *edge) build(c *settings) error {
	if err := e.loadCert(c.TLS); err != nil {
		return err
	}
	resources := e.resources()
	opts, err := c.GateOptions(resources)
	if err != nil {
		return c.doc.At(err)
	}
	if e.gate, err = admission.New(opts); err != nil {
		return err
	}
	if e.outbound, err = e.upstream(c, resources); err != nil {
		return err
	}
	e.handler, err = e.chain(c)
	return err
}

// upstream is the transport to it: the file's section outbound, and what the edge
// makes of answers.
func (e *edge) upstream(c *settings, resources policy.Resources) (*outbound.Transport, error) {
	out, err := c.OutboundOptions(resources)
	if err != nil {
		return nil, c.doc.At(err)
	}
	out.Base = base(c.Upstream)
	out.Key, _ = counted(c.Config)
	out.Classify = []outbound.Classifier{newSignals(c.Upstream).judge}
	out.Retry.MaxElapsed = cmp.Or(out.Retry.MaxElapsed, time.Duration(c.Outbound.MaxWait))
	return outbound.New(out)
}

// chain is the way of a request: gate, then the guard against stalls, then the list of
// protocols, then the proxy.
func (e *edge) chain(c *settings) (http.Handler, error) {
	proxy, err := newProxy(c.Config, e.outbound, e.log)
	if err != nil {
		return nil, err
	}
	inner := newProtocols(c.Config).limit(proxy)
	if _, note := counted(c.Config); note != nil {
		inner = note(inner)
	}
	return e.goodbye(e.gate.Handler(guard{inner, c.stall(), int64(c.MaxBody)})), nil
}

func (e *edge) resources() policy.Resources {
	return policy.Resources{Shared: e.store.limit, Observer: e.metrics, OutboundObserver: e.metrics.Outbound()}
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

// loadCert reads the certificate; handshakes from now on use it.
func (e *edge) loadCert(files TLS) error {
	if files.Cert == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	e.cert.Store(&cert)
	return nil
}

// close gives back what is not the servers'.
func (e *edge) close() {
	e.gate.Close()
	e.store.close()
	if e.outbound != nil {
		e.outbound.CloseIdleConnections()
	}
}
