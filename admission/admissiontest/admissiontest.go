// Package admissiontest makes gates for tests of handlers that stand behind one.
//
// Every request that httptest makes comes from 192.0.2.1, so a real gate with a
// rate counts them as one caller.
package admissiontest

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Open returns a gate that admits everything at once: no rate, and more slots than
// a test will fill.
func Open() *admission.Gate {
	return admission.MustNew(admission.Options{
		Name: "open", Rate: ratelimit.Unlimited, Pool: admission.Pool{Limit: shed.Fixed(1 << 20), MaxWait: admission.NoWait},
		HTTP: admission.HTTP{PreflightRate: ratelimit.Unlimited},
	})
}

// Refuse returns a gate that refuses everything but exempt routes for the given
// reason, with the answer that a real gate gives, in Handler, At and Admit alike. It
// panics when r is no refusal.
func Refuse(r shed.Reason) *admission.Gate {
	if !r.Refused() || int(r) >= shed.ReasonCount {
		panic(fmt.Sprintf("admissiontest: Refuse(%v): not a refusal", r))
	}
	return admission.MustNew(admission.Options{Name: "refusing", Rate: refusing(r), HTTP: admission.HTTP{Preflights: admission.PreflightsAsOthers}})
}

// refusing is a limiter that refuses everything and names the reason.
type refusing shed.Reason

func (r refusing) Reason() shed.Reason { return shed.Reason(r) }

func (refusing) Take(context.Context, time.Time, ratelimit.Key, int, time.Duration) ratelimit.Decision {
	return ratelimit.Decision{Wait: time.Second}
}

func (refusing) Policy(ratelimit.Key) ratelimit.Policy { return ratelimit.Policy{} }
func (refusing) Validate() error                       { return nil }

var _ ratelimit.Limiter = refusing(0)
