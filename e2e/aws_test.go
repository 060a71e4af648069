package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
)

// fakeSNS refuses every call with a code of SNS, in its own XML, and counts them.
type fakeSNS struct {
	code    string
	status  int
	arrived atomic.Int64
}

func (s *fakeSNS) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.arrived.Add(1)
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(s.status)
	fmt.Fprintf(w, `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>%s</Code><Message>no</Message></Error><RequestId>1</RequestId></ErrorResponse>`, s.code)
}

// snsClient is the SDK as a service uses it: it retries, the transport below it paces.
func snsClient(t *testing.T, s *fakeSNS) (*sns.Client, *outbound.Transport) {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	rt := outbound.MustNew(outbound.Options{
		Rate:     ratelimit.PerKey(1e5, 1e5),
		Retry:    outbound.RetryOptions{Attempts: 1}, // the SDK's business
		Classify: []outbound.Classifier{outbound.Bodies},
	})
	client := sns.New(sns.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), HTTPClient: &http.Client{Transport: rt},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "A", SecretAccessKey: "S"}, nil
		}),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond }),
	})
	return client, rt
}

func publish(t *testing.T, client *sns.Client) error {
	_, err := client.Publish(t.Context(), &sns.PublishInput{
		TargetArn: aws.String("arn:aws:sns:eu-west-1:1:endpoint/GCM/app/device"), Message: aws.String("hello"),
	})
	return err
}

func snsOperation(t *testing.T, rt *outbound.Transport) pacer.OperationStats {
	t.Helper()
	s := rt.Stats()
	if len(s.Operations) != 1 {
		t.Fatalf("%d operations", len(s.Operations))
	}
	return s.Operations[0]
}

// Case OU-03: tried on the product, with the SDK itself
func TestTheAWSSDKsErrorsKeepTheirMeaning(t *testing.T) {
	for _, c := range []struct {
		code   string
		status int
		want   verdict.Kind
		least  int64 // attempts; the SDK knows the first code, and retries
	}{
		{"Throttling", 400, verdict.Throttled, 3},
		{"KMSThrottling", 400, verdict.Throttled, 1},
		{"Throttled", 429, verdict.Throttled, 1},
		{"EndpointDisabled", 400, verdict.Permanent, 1},
		{"NotFound", 404, verdict.Permanent, 1},
		{"InternalError", 500, verdict.Transient, 3},
	} {
		t.Run(c.code, func(t *testing.T) {
			s := &fakeSNS{code: c.code, status: c.status}
			client, rt := snsClient(t, s)
			err := publish(t, client)
			if err == nil || outbound.IsThrottle(err) != (c.want == verdict.Throttled) || outbound.IsConclusive(err) != (c.want == verdict.Permanent) {
				t.Errorf("%v: throttle %v, conclusive %v", err, outbound.IsThrottle(err), outbound.IsConclusive(err))
			}
			o, arrived := snsOperation(t, rt), s.arrived.Load()
			if arrived < c.least || int64(o.Attempts) != arrived || int64(o.Ended[c.want]) != arrived {
				t.Errorf("%d arrived, %d charged, ended %v", arrived, o.Attempts, o.Ended)
			}
			if (o.Multiplier < 1) != (c.want == verdict.Throttled) {
				t.Errorf("×%v", o.Multiplier)
			}
		})
	}
}

// A hundred failing calls use up the SDK's own budget of retries, and its error then
// speaks of a rate limit on this side: it is still the throttle that the server sent.
func TestTheAWSSDKsSpentRetriesAreStillAThrottle(t *testing.T) {
	s := &fakeSNS{code: "Throttling", status: 400}
	client, rt := snsClient(t, s)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range 3 {
				if err := publish(t, client); !outbound.IsThrottle(err) || outbound.IsConclusive(err) {
					t.Errorf("%v", err)
				}
			}
		})
	}
	wg.Wait()
	o, arrived := snsOperation(t, rt), s.arrived.Load()
	if int64(o.Attempts) != arrived || arrived < 300 || arrived >= 900 {
		t.Errorf("%d arrived, %d charged, of 300 calls; want fewer than three for each", arrived, o.Attempts)
	}
}

// A call that this side refuses is neither the server's throttle nor an answer.
func TestTheAWSSDKPassesARefusalOn(t *testing.T) {
	s := &fakeSNS{code: "Throttling", status: 400}
	client, _ := snsClient(t, s)
	ctx := outbound.NewAttempts(0).Context(t.Context())
	_, err := client.Publish(ctx, &sns.PublishInput{TargetArn: aws.String("arn:x"), Message: aws.String("hello")})
	if err == nil || s.arrived.Load() != 0 || outbound.Check(nil, err) == nil || outbound.IsConclusive(err) || outbound.IsThrottle(err) {
		t.Errorf("%v after %d arrivals", err, s.arrived.Load())
	}
}
