// Package admissiontest makes gates for tests of handlers that stand behind one.
//
// Every request that httptest makes comes from 192.0.2.1, so a real gate with a
// rate counts them as one caller.
package admissiontest

import (
	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/internal/testhook"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// Open returns a gate that admits everything at once: no rate, and more slots than
// a test will fill.
func Open() *admission.Gate {
	return admission.MustNew(admission.Options{
		Name: "open", Rate: ratelimit.Unlimited, Limit: shed.Fixed(1 << 20), MaxWait: admission.NoWait,
	})
}

// Refuse returns a gate that refuses everything but exempt routes for the given
// reason, with the answer that a real gate gives. It panics when r is no refusal.
func Refuse(r shed.Reason) *admission.Gate {
	return testhook.Refusing(r).(*admission.Gate)
}
