package outbound_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
)

// What AWS services say, in each of the forms in which it arrives: a header, a body in
// XML or in JSON, an error of the SDK.
//
// Case OU-03: tried on the product
func TestAWSCodesMeanWhatTheirServicesSay(t *testing.T) {
	for _, c := range []struct {
		code   string
		status int
		want   verdict.Kind
	}{
		{"KMSThrottling", 400, verdict.Throttled},
		{"KMSThrottlingException", 400, verdict.Throttled},
		{"KmsThrottled", 400, verdict.Throttled},
		{"Throttled", 429, verdict.Throttled},
		{"Throttled", 400, verdict.Throttled},
		{"ThrottledClientException", 400, verdict.Throttled},
		{"ClientLimitExceededException", 400, verdict.Throttled},
		{"APICallRateForCustomerExceeded", 400, verdict.Throttled},
		{"TooManyRequests", 429, verdict.Throttled},
		{"SlowDown", 503, verdict.Throttled},
		{"Throttling", 400, verdict.Throttled},
		{"LimitExceededException", 400, verdict.QuotaExhausted},

		{"EndpointDisabled", 400, verdict.Permanent},
		{"NotFound", 404, verdict.Permanent},
		{"TopicLimitExceeded", 403, verdict.Permanent},
		{"TooManyTagsException", 400, verdict.Permanent},
		{"KMSDisabled", 400, verdict.Permanent},
		{"InternalError", 500, verdict.Transient},
	} {
		header := answer(nil, c.status, "X-Amzn-ErrorType", c.code+":http://internal.amazon.com/")
		xml := answer(nil, c.status)
		xml.Body = body(`<ErrorResponse><Error><Type>Sender</Type><Code>` + c.code + `</Code></Error></ErrorResponse>`)
		ec2 := answer(nil, c.status)
		ec2.Body = body("<?xml version='1.0'?>\n<Response><Errors><Error><Code>" + c.code + "</Code></Error></Errors></Response>")
		typed, coded := answer(nil, c.status), answer(nil, c.status)
		typed.Body = body(`{"__type":"com.amazonaws.sns#` + c.code + `"}`)
		coded.Body = body(`{"code":"com.amazonaws.sns#` + c.code + `","message":"x"}`)
		sdk := fmt.Errorf("operation error SNS: Publish: %w",
			errors.Join(awsError{c.code}, awsResponseError{answer(nil, c.status)}))
		for form, err := range map[string]error{
			"header": outbound.Check(header, nil),
			"XML":    outbound.Check(xml, nil, outbound.Bodies),
			"EC2":    outbound.Check(ec2, nil, outbound.Bodies),
			"type":   outbound.Check(typed, nil, outbound.Bodies),
			"code":   outbound.Check(coded, nil, outbound.Bodies),
			"SDK":    outbound.Check(nil, sdk),
		} {
			var e *verdict.Error
			if !errors.As(err, &e) || e.Verdict.Kind != c.want {
				t.Errorf("%s %d as %s: %v, want %v", c.code, c.status, form, err, c.want)
			}
			if got := outbound.IsConclusive(err); got != (c.want == verdict.Permanent) {
				t.Errorf("%s %d as %s: conclusive is %v", c.code, c.status, form, got)
			}
		}
	}
}

func body(text string) io.ReadCloser { return io.NopCloser(strings.NewReader(text)) }
