package proxy

import (
	"net/http"
	"strconv"
	"strings"
)

// GRPC answers callers that speak gRPC in gRPC: where next refuses in HTTP, they hear an
// answer of status 200 that consists of trailers only, with the code that the refusal
// means and, as grpc-retry-pushback-ms, how long to stay away (-1: do not come back with
// this). It stands outside of the gate, which sees the status as it was. What an upstream
// says in gRPC passes as it is.
func GRPC(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind := r.Header["Content-Type"]; len(kind) == 1 && strings.HasPrefix(kind[0], grpcType) {
			w = &grpcWriter{ResponseWriter: w, contentType: kind[0][:min(len(kind[0]), 64)]}
		}
		next.ServeHTTP(w, r)
	})
}

const grpcType = "application/grpc"

// The codes of gRPC for what a proxy refuses.
const (
	grpcDeadlineExceeded  = 4
	grpcResourceExhausted = 8
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcUnauthenticated   = 16
)

// grpcCode is what a refusal means, also for what its client library does about it.
func grpcCode(status int) int {
	switch status {
	case http.StatusUnauthorized:
		return grpcUnauthenticated
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
		return grpcResourceExhausted
	case http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return grpcDeadlineExceeded
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return grpcUnavailable
	}
	return grpcInternal
}

// grpcWriter turns a refusal into one of gRPC, and passes on everything else.
type grpcWriter struct {
	http.ResponseWriter
	contentType string
	wrote, drop bool
}

// Unwrap is for http.ResponseController.
func (w *grpcWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *grpcWriter) WriteHeader(status int) {
	if status >= 200 && !w.wrote {
		w.wrote = true
		if status >= 400 && !strings.HasPrefix(w.Header().Get("Content-Type"), grpcType) {
			status, w.drop = w.translate(status), true
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// translate makes trailers of a refusal, which an answer without a body has as its
// header, and returns the status.
func (w *grpcWriter) translate(status int) int {
	h := w.Header()
	message := strings.ToLower(http.StatusText(status))
	if reason := h.Get("Headgate-Reason"); reason != "" {
		message += " (" + reason + ")"
	}
	if pushback, ok := pushback(status, h.Get("Retry-After")); ok {
		h.Set("Grpc-Retry-Pushback-Ms", pushback)
	}
	h.Del("Content-Length")
	h.Del("Trailer")
	h.Set("Content-Type", w.contentType)
	h.Set("Grpc-Status", strconv.Itoa(grpcCode(status)))
	h.Set("Grpc-Message", message)
	return http.StatusOK
}

// pushback is Retry-After in milliseconds. A 429 without one is for good.
func pushback(status int, retryAfter string) (string, bool) {
	if seconds, err := strconv.ParseUint(retryAfter, 10, 31); err == nil {
		return strconv.FormatUint(seconds*1000, 10), true
	}
	return "-1", status == http.StatusTooManyRequests
}

func (w *grpcWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	if w.drop {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// FlushError keeps a refusal from ending before its status is written.
func (w *grpcWriter) FlushError() error {
	if !w.wrote {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}
