package admissiontest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/admissiontest"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// Every reason is one that a handler behind the gate can be tested with, wherever the
// gate is asked.
func TestRefuseRefusesForEveryReasonEverywhere(t *testing.T) {
	for i := range shed.ReasonCount {
		reason := shed.Reason(i)
		if !reason.Refused() {
			continue
		}
		g := admissiontest.Refuse(reason)
		inside := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%v: the handler ran", reason) })
		want := (&admission.Rejection{Reason: reason}).Status()
		for name, h := range map[string]http.Handler{"Handler": g.Handler(inside), "At": g.At(priority.High)(inside)} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if w.Code != want || w.Header().Get("Headgate-Reason") != reason.String() {
				t.Errorf("%s: %d %q, want %d %q", name, w.Code, w.Header().Get("Headgate-Reason"), want, reason)
			}
		}
		for _, who := range []caller.Caller{{}, {Key: "acme", Verified: true}} {
			if _, err := g.Admit(context.Background(), admission.Ticket{Caller: who}); !errors.Is(err, reason) {
				t.Errorf("Admit(%+v): %v, want %v", who, err, reason)
			}
		}
	}
}

func TestRefuseWantsARefusal(t *testing.T) {
	for _, r := range []shed.Reason{shed.Admitted, shed.Exempt, shed.Reason(shed.ReasonCount)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Refuse(%v) did not panic", r)
				}
			}()
			admissiontest.Refuse(r)
		}()
	}
}
