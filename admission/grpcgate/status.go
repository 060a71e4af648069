package grpcgate

import (
	"context"
	"errors"
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

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/shed"
)

// Domain is that of the google.rpc.ErrorInfo in refusals.
const Domain = "headgate"

const (
	reasonKey   = "headgate-reason"
	pushbackKey = "grpc-retry-pushback-ms" // gRFC A6; less than zero: do not try again
)

// refusal is the error of a call that the gate refused.
func refusal(ctx context.Context, err error) error {
	rej := (*admission.Rejection)(nil)
	if !errors.As(err, &rej) {
		return err
	}
	reason, pushback := rej.Reason.String(), "-1"
	info := &errdetails.ErrorInfo{Domain: Domain, Reason: strings.ToUpper(strings.ReplaceAll(reason, "-", "_"))}
	details := []protoadapt.MessageV1{info}
	if after := retryAfter(rej); after > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
		pushback = strconv.FormatInt(after.Milliseconds(), 10)
	}
	// It fails only outside of a call, where no trailer can be sent.
	_ = grpc.SetTrailer(ctx, metadata.Pairs(reasonKey, reason, pushbackKey, pushback))
	s := status.New(codeOf(rej), reason)
	if with, err := s.WithDetails(details...); err == nil {
		s = with
	}
	return s.Err()
}

// retryAfter is when another try makes sense, in whole seconds as in HTTP; zero: never.
func retryAfter(rej *admission.Rejection) time.Duration {
	if rej.Reason == shed.NotAdmissible || rej.Reason == shed.Unidentified {
		return 0
	}
	seconds := (rej.RetryAfter + time.Second - 1) / time.Second
	return max(seconds, 1) * time.Second
}

// codeOf says in gRPC what the gate said in HTTP.
func codeOf(rej *admission.Rejection) codes.Code {
	switch {
	case rej.Reason == shed.ClientGone:
		return codes.Canceled
	case rej.Reason == shed.Unidentified:
		return codes.Unauthenticated
	case rej.Status() == http.StatusTooManyRequests:
		return codes.ResourceExhausted
	}
	return codes.Unavailable
}

// outcomeOf says what the end of a call tells about capacity: what means overload, what
// is a failure of the service, and what is the caller's doing.
func outcomeOf(err error) shed.Outcome {
	if err == nil {
		return shed.Served
	}
	switch status.Code(err) {
	case codes.OK:
		return shed.Served
	case codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted:
		return shed.TimedOut
	case codes.Internal, codes.Unknown, codes.DataLoss, codes.Unimplemented:
		return shed.Failed
	}
	return shed.Ignored
}
