package admission_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/ratelimit"
)

func ExampleCostIn() {
	estimate := func(r *http.Request) int { return 4000 } // bytes/4 of the prompt, and its max_tokens

	gate := admission.MustNew(admission.Options{
		Rate: ratelimit.All(
			ratelimit.PerKey(1, 60, ratelimit.Name("requests")), // 60 a minute
			ratelimit.Counting("tokens", ratelimit.PerKey(100_000.0/60, 10_000, ratelimit.Name("tokens"))),
		),
	})
	chat := gate.At(priority.Normal, admission.CostIn("tokens", estimate)) // from the prompt's length and max_tokens

	model := chat(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admission.ChargeIn(r.Context(), "tokens", 3500) // what it really took
	}))
	for range 3 {
		w := httptest.NewRecorder()
		model.ServeHTTP(w, httptest.NewRequest("POST", "/chat", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 429
}
