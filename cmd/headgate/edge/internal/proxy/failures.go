package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/logs"
	"github.com/headgate-go/headgate/cmd/headgate/edge/internal/upstream"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// failures answer for an upstream that did not, and tell why in the log. Nothing of the
// error reaches the client.
type failures struct {
	retried  bool
	upstream string
	log      *logs.Often
}

func (f *failures) answer(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if p, ok := w.(*patience); ok && p.stalled.Load() {
		status = http.StatusRequestTimeout
	}
	if status >= 500 && !errors.Is(err, verdict.ErrLocal) && !left(r, err) {
		what := fault(err)
		f.log.Warn(time.Now(), what, "the upstream failed", "what", what, "upstream", f.upstream, "status", status, "error", err)
	}
	f.relay(w.Header(), err, status)
	refuse(w, status)
}

// left reports a client that went away: the error says nothing about the upstream.
func left(r *http.Request, err error) bool {
	return errors.Is(err, context.Canceled) && r.Context().Err() != nil
}

// relay says when to come back, where the transport held the request back.
func (f *failures) relay(h http.Header, err error, status int) {
	outbound.Relay(h, nil, err)
	if !f.retried {
		h.Del("Headgate-Retried")
	}
	if status == http.StatusServiceUnavailable && h.Get("Retry-After") == "" {
		h.Set("Retry-After", "1")
	}
}

// refuse writes an answer of one line.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	switch status {
	case http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed:
		w.Header().Set("Connection", "close") // the rest of the request is unread
	}
	http.Error(w, strings.ToLower(http.StatusText(status)), status)
}

func statusOf(err error) int {
	var tooLarge *http.MaxBytesError
	var client *upstream.ClientFault
	var timeout net.Error
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.As(err, &client):
		return http.StatusBadRequest
	case errors.Is(err, verdict.ErrLocal):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// fault says in one of a few words what is wrong with the upstream.
func fault(err error) string {
	var (
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		invalid x509.CertificateInvalidError
		odd     *nonsense
		timeout net.Error
		op      *net.OpError
	)
	switch {
	case errors.As(err, &dns):
		return "its name is unknown"
	case errors.As(err, &cert), errors.As(err, &invalid):
		return "its certificate is not accepted"
	case errors.As(err, &record), errors.As(err, &alert):
		return "no TLS with it"
	case errors.As(err, &odd):
		return "an answer that is none"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &op) && op.Op == "dial":
		return "no connection to it"
	}
	return "it broke off"
}
