package verdict

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"
)

// The small interfaces that SDK errors implement. Naming them here instead of
// importing the SDKs keeps every SDK out of every user's go.mod.
type (
	errorCoder  interface{ ErrorCode() string }                 // AWS smithy API errors
	statusCoder interface{ HTTPStatusCode() int }               // AWS smithy response errors
	retryAfter  interface{ RetryAfter() (time.Duration, bool) } // throttles with a hint
	apiError    interface {                                     // Google's gax
		HTTPCode() int
		Reason() string
	}
)

// OfError judges an error, the nearest evidence first: a verdict that the
// error carries, a refusal of this side, the caller's own end, what an SDK says, what the
// network says. Errors are recognised by type and by small interfaces that SDKs
// implement, never by their text. A refused connection is [Transient].
func OfError(err error) Verdict {
	if v, ok := ofOwn(err); ok {
		return v
	}
	v, ok := ofSDK(err)
	switch {
	case !ok && enhanceYourCalm(err):
		return Verdict{Kind: Throttled}
	case !ok:
		return Verdict{Kind: networkKind(err)}
	}
	var hint retryAfter
	if !v.Hinted && v.Kind.AsksForLess() && errors.As(err, &hint) {
		d, ok := hint.RetryAfter()
		v.Hint, v.Hinted = min(max(d, 0), farthest), ok
	}
	return v
}

func ofOwn(err error) (Verdict, bool) {
	var carried *Error
	switch {
	case errors.As(err, &carried):
		return carried.Verdict, true
	case errors.Is(err, ErrLocal):
		return Verdict{Kind: LocalRefusal, Final: true}, true
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Verdict{Kind: Canceled, Final: true}, true
	}
	return Verdict{}, false
}

// ofSDK asks for a code first, because a throttle may come with any status.
func ofSDK(err error) (Verdict, bool) {
	var code errorCoder
	if errors.As(err, &code) {
		if v, ok := ofCode(code.ErrorCode()); ok {
			return v, true
		}
	}
	var api apiError
	if errors.As(err, &api) {
		if v, ok := ofGoogle(api.Reason()); ok {
			return v, true
		}
		if status := api.HTTPCode(); status >= 400 {
			return Verdict{Kind: kindOfStatus(status)}, true
		}
	}
	if status := statusOf(err); status >= 400 {
		return Verdict{Kind: kindOfStatus(status)}, true
	}
	var hint retryAfter
	if errors.As(err, &hint) {
		d, ok := hint.RetryAfter()
		return Verdict{Kind: Throttled, Hint: min(max(d, 0), farthest), Hinted: ok}, ok
	}
	return Verdict{}, false
}

// ofGoogle judges the reason in a Google API error, which alone tells a rate
// from a day's quota from a missing permission.
func ofGoogle(reason string) (Verdict, bool) {
	switch reason {
	case "rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED":
		return Verdict{Kind: Throttled}, true
	case "dailyLimitExceeded", "quotaExceeded", "RESOURCE_QUOTA_EXCEEDED":
		return Verdict{Kind: QuotaExhausted}, true
	}
	return Verdict{}, false
}

// statusOf returns the HTTP status an SDK error carries, or zero. The method of a
// response error without a response panics in at least one SDK.
func statusOf(err error) (status int) {
	var s statusCoder
	if !errors.As(err, &s) {
		return 0
	}
	defer func() {
		if recover() != nil {
			status = 0
		}
	}()
	return s.HTTPStatusCode()
}

// networkKind tells what may pass from what will not. Temporary() is not asked: it
// is deprecated and never meant a throttle.
func networkKind(err error) Kind {
	var (
		unknownCA x509.UnknownAuthorityError
		badHost   x509.HostnameError
		invalid   x509.CertificateInvalidError
		dns       *net.DNSError
	)
	switch {
	case errors.As(err, &unknownCA), errors.As(err, &badHost), errors.As(err, &invalid):
		return Permanent
	case errors.As(err, &dns) && dns.IsNotFound:
		return Permanent
	}
	return Transient
}

// An HTTP/2 server that wants fewer requests resets the stream or the connection with
// this code (RFC 9113, section 7).
const http2EnhanceYourCalm = 0xb

// goAwayText is all that net/http lets out of a GOAWAY that refuses the first request
// of a connection: an error without a type. It is compared whole, so no text of the
// server's can look like it.
const goAwayText = "http2: Transport received GOAWAY from server ErrCode:ENHANCE_YOUR_CALM"

// enhanceYourCalm reports whether an HTTP/2 error with that code is in err's tree. The
// types of net/http have no exported name, and those of golang.org/x/net/http2 are not
// worth a dependency: they are recognised by the names of type and field.
func enhanceYourCalm(err error) bool {
	if err == nil {
		return false
	}
	if code, ok := http2Code(reflect.ValueOf(err)); ok {
		return code == http2EnhanceYourCalm
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return enhanceYourCalm(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), enhanceYourCalm)
	}
	return err.Error() == goAwayText
}

// http2Code returns the code of an HTTP/2 error: of a stream, of a connection, or in a
// GOAWAY.
func http2Code(v reflect.Value) (uint64, bool) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return 0, false
	}
	t := v.Type()
	if path := t.PkgPath(); path != "net/http" && !strings.HasSuffix(path, "/http2") {
		return 0, false
	}
	switch strings.TrimPrefix(t.Name(), "http2") {
	case "StreamError":
		v = fieldOf(v, "Code")
	case "GoAwayError":
		v = fieldOf(v, "ErrCode")
	case "ConnectionError":
	default:
		return 0, false
	}
	if !v.CanUint() {
		return 0, false
	}
	return v.Uint(), true
}

func fieldOf(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// NeverLeft reports whether err is proof that no byte of the request was sent: the
// name was not found, the connection not made, the handshake not finished.
func NeverLeft(err error) bool {
	var (
		op     *net.OpError
		dns    *net.DNSError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
	)
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns) ||
		errors.As(err, &cert) || errors.As(err, &record)
}

// gRPC status codes, by their numbers.
const (
	grpcCanceled          = 1
	grpcDeadlineExceeded  = 4
	grpcResourceExhausted = 8
	grpcAborted           = 10
	grpcUnavailable       = 14
)

// OfGRPC judges a gRPC status by its code; pushback is the grpc-retry-pushback-ms
// trailer, empty if there was none. local says that the status was made on this
// side: grpc-go answers RESOURCE_EXHAUSTED itself when a message is too large, and
// no rate helps with that.
func OfGRPC(code uint32, pushback string, local bool) Verdict {
	v := Verdict{Kind: Permanent}
	switch code {
	case 0:
		v.Kind = OK
	case grpcResourceExhausted:
		if !local {
			v.Kind = Throttled
		}
	case grpcUnavailable:
		v.Kind = Transient
	case grpcAborted:
		v.Kind = Conflict
	case grpcCanceled, grpcDeadlineExceeded:
		v.Kind = Canceled
	}
	if pushback != "" {
		d, ok := parseMilliseconds(pushback)
		v.Hint, v.Hinted, v.Final = d, ok, !ok
	}
	return v
}
