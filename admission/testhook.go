package admission

import (
	"fmt"

	"github.com/headgate-go/headgate/internal/testhook"
	"github.com/headgate-go/headgate/shed"
)

func init() {
	testhook.Refusing = func(r shed.Reason) any {
		if !r.Refused() || int(r) >= shed.ReasonCount {
			panic(fmt.Sprintf("admissiontest: Refuse(%v): not a refusal", r))
		}
		g := MustNew(Options{Name: "refusing"})
		g.refusing = r
		return g
	}
}
