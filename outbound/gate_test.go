package outbound_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/admissiontest"
	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// What a gate writes is what this side reads: the two packages share no code for it.
func TestAClientUnderstandsAGate(t *testing.T) {
	for r := range shed.Reason(shed.ReasonCount) {
		if !r.Refused() || r == shed.ClientGone {
			continue
		}
		bubble(t, r.String(), func(t *testing.T) {
			gate := admissiontest.Refuse(r)
			base := serve(t, gate.At(priority.Normal)(says(200)).ServeHTTP)
			rt := outbound.MustNew(outbound.Options{Base: base, Retry: outbound.RetryOptions{Attempts: 1}})
			req, _ := http.NewRequest(http.MethodGet, "http://service.test/", nil)
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if v := outbound.Classify(resp, nil); v.Reason != r || v.Kind == verdict.OK {
				t.Errorf("status %d, %v: %+v", resp.StatusCode, resp.Header, v)
			}
		})
	}
}

// A caller that is over its rate comes back when the gate said, and is admitted.
func TestAClientAndAGateAgreeOnWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		gate := admission.MustNew(admission.Options{
			Rate:     ratelimit.PerKey(0.5, 1),
			Deadline: admission.TimeoutHeader("X-Timeout", time.Minute),
		})
		base := serve(t, gate.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			deadline, _ := r.Context().Deadline()
			left = time.Until(deadline)
		})).ServeHTTP)
		rt := outbound.MustNew(outbound.Options{Base: base})
		for range 3 {
			if status, _, err := get(t, shortly(t, 10*time.Second), rt); err != nil || status != 200 {
				t.Fatal(status, err)
			}
		}
		if o := operation(t, rt); o.Attempts != 5 || o.Ended[verdict.Throttled] != 2 {
			t.Errorf("%d attempts, %d of them throttled; want each refusal once", o.Attempts, o.Ended[verdict.Throttled])
		}
		if left <= 0 || left > 10*time.Second {
			t.Errorf("the handler had %v left of a deadline of 10 s", left)
		}
	})
}
