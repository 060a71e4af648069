package grpcgate

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate-go/headgate/outbound/verdict"
)

// verdictOf says what the end of a call means: by the reason of a gate, or else by its
// status and what came with it.
func verdictOf(err error, trailer metadata.MD) verdict.Verdict {
	s := status.Convert(err)
	pushback := first(trailer[pushbackKey])
	if reason := first(trailer[reasonKey]); reason != "" {
		return ofGate(s.Code(), reason, pushback)
	}
	v := verdict.OfGRPC(uint32(s.Code()), pushback, madeHere(s))
	if delay, ok := retryInfo(s); ok && !v.Hinted && pushback == "" {
		v.Hint, v.Hinted = delay, true
	}
	return v
}

// ofGate judges the refusal of a gate as its answer in HTTP would be.
func ofGate(code codes.Code, reason, pushback string) verdict.Verdict {
	httpStatus := http.StatusServiceUnavailable
	if code == codes.ResourceExhausted {
		httpStatus = http.StatusTooManyRequests
	}
	h := map[string][]string{"Headgate-Reason": {reason}}
	if ms, err := strconv.ParseInt(pushback, 10, 64); err == nil && ms >= 0 {
		h["Retry-After"] = []string{strconv.FormatInt((ms+999)/1000, 10)}
	}
	return verdict.OfAnswer(time.Now(), httpStatus, h)
}

func retryInfo(s *status.Status) (time.Duration, bool) {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.RetryDelay.IsValid() {
			return max(info.RetryDelay.AsDuration(), 0), true
		}
	}
	return 0, false
}

// madeHere reports a RESOURCE_EXHAUSTED that grpc-go made on this side.
func madeHere(s *status.Status) bool {
	return s.Code() == codes.ResourceExhausted && strings.Contains(s.Message(), "larger than max")
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
