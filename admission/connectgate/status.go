package connectgate

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/shed"
)

const (
	domain      = "headgate" // of the google.rpc.ErrorInfo in refusals, as in package grpcgate
	reasonKey   = "Headgate-Reason"
	retryKey    = "Retry-After"
	pushbackKey = "Grpc-Retry-Pushback-Ms" // gRFC A6; less than zero: do not try again
)

// errorOf is a refusal as an error of connect.
func errorOf(rej *admission.Rejection) *connect.Error {
	reason := rej.Reason.String()
	e := connect.NewError(codeOf(rej), errors.New(reason))
	e.Meta().Set(reasonKey, reason)
	e.Meta().Set(pushbackKey, "-1")
	add(e, &errdetails.ErrorInfo{Domain: domain, Reason: strings.ToUpper(strings.ReplaceAll(reason, "-", "_"))})
	if after := retryAfter(rej); after > 0 {
		add(e, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
		e.Meta().Set(retryKey, strconv.FormatInt(int64(after/time.Second), 10))
		e.Meta().Set(pushbackKey, strconv.FormatInt(after.Milliseconds(), 10))
	}
	return e
}

func add(e *connect.Error, message proto.Message) {
	if detail, err := connect.NewErrorDetail(message); err == nil {
		e.AddDetail(detail)
	}
}

// retryAfter is when another try makes sense, in whole seconds as in HTTP; zero: never.
func retryAfter(rej *admission.Rejection) time.Duration {
	if rej.Reason == shed.NotAdmissible || rej.Reason == shed.Unidentified {
		return 0
	}
	seconds := (rej.RetryAfter + time.Second - 1) / time.Second
	return max(seconds, 1) * time.Second
}

// codeOf says in connect what the gate says in HTTP.
func codeOf(rej *admission.Rejection) connect.Code {
	switch {
	case rej.Reason == shed.ClientGone:
		return connect.CodeCanceled
	case rej.Reason == shed.Unidentified:
		return connect.CodeUnauthenticated
	case rej.Status() == http.StatusTooManyRequests:
		return connect.CodeResourceExhausted
	}
	return connect.CodeUnavailable
}

// outcomeOf says what the end of a call tells about capacity: what means overload, what
// is a failure of the service, and what is the caller's doing.
func outcomeOf(err error) shed.Outcome {
	if err == nil {
		return shed.Served
	}
	switch connect.CodeOf(err) {
	case connect.CodeDeadlineExceeded, connect.CodeUnavailable, connect.CodeResourceExhausted:
		return shed.TimedOut
	case connect.CodeInternal, connect.CodeUnknown, connect.CodeDataLoss, connect.CodeUnimplemented:
		return shed.Failed
	}
	return shed.Ignored
}

// verdictOf says what the end of a call means: by the reason of a gate, or else by its
// code and what came with it.
func verdictOf(err error) verdict.Verdict {
	if err == nil {
		return verdict.Verdict{}
	}
	e := (*connect.Error)(nil)
	if !errors.As(err, &e) {
		return verdict.OfError(err)
	}
	h := e.Meta()
	if h.Get(reasonKey) != "" {
		status := http.StatusServiceUnavailable
		if e.Code() == connect.CodeResourceExhausted {
			status = http.StatusTooManyRequests
		}
		return verdict.OfAnswer(time.Now(), status, h)
	}
	v := verdict.OfGRPC(uint32(e.Code()), h.Get(pushbackKey), !connect.IsWireError(err))
	if !v.Hinted && h.Get(pushbackKey) == "" {
		v.Hint, v.Hinted = retryInfo(e)
	}
	return verdict.Complete(time.Now(), h, v)
}

func retryInfo(e *connect.Error) (time.Duration, bool) {
	for _, d := range e.Details() {
		message, err := d.Value()
		if info, ok := message.(*errdetails.RetryInfo); err == nil && ok && info.RetryDelay.IsValid() {
			return max(info.RetryDelay.AsDuration(), 0), true
		}
	}
	return 0, false
}
