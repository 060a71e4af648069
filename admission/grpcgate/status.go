package grpcgate

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate-go/headgate/shed"
)

// Domain is that of the google.rpc.ErrorInfo in refusals.
const Domain = "headgate"

const (
	reasonKey   = "headgate-reason"
	pushbackKey = "grpc-retry-pushback-ms" // gRFC A6; less than zero: do not try again
)

// refusal is the error of a call that the gate refused.
func (c *call) refusal() error {
	h := c.answer.Header()
	reason := h.Get("Headgate-Reason")
	info := &errdetails.ErrorInfo{Domain: Domain, Reason: strings.ToUpper(strings.ReplaceAll(reason, "-", "_"))}
	details := []protoadapt.MessageV1{info}
	pushback := "-1"
	if seconds, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		after := time.Duration(seconds) * time.Second
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
		pushback = strconv.FormatInt(after.Milliseconds(), 10)
	}
	// It fails only outside of a call, where no trailer can be sent.
	_ = grpc.SetTrailer(c.Context, metadata.Pairs(reasonKey, reason, pushbackKey, pushback))
	s := status.New(codeOf(reason, c.answer.status), reason)
	if with, err := s.WithDetails(details...); err == nil {
		s = with
	}
	return s.Err()
}

// codeOf says in gRPC what the gate said in HTTP.
func codeOf(reason string, httpStatus int) codes.Code {
	switch {
	case reason == shed.ClientGone.String():
		return codes.Canceled
	case reason == shed.Unidentified.String():
		return codes.Unauthenticated
	case httpStatus == http.StatusTooManyRequests:
		return codes.ResourceExhausted
	}
	return codes.Unavailable
}

// statusOf says in HTTP how a call ended, for the gate to learn from: what means
// overload, what is a failure of the service, and what is the caller's doing.
func statusOf(code codes.Code) int {
	switch code {
	case codes.OK:
		return http.StatusOK
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	case codes.Unavailable, codes.ResourceExhausted:
		return http.StatusServiceUnavailable
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.Unimplemented:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}
