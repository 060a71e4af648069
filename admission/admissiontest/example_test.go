package admissiontest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/admissiontest"
	"github.com/headgate-go/headgate/priority"
	"github.com/headgate-go/headgate/shed"
)

// shop is what a service builds from its gate.
func shop(gate *admission.Gate) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/checkout", gate.At(priority.Critical)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "paid")
	})))
	return mux
}

func ExampleOpen() {
	w := httptest.NewRecorder()
	shop(admissiontest.Open()).ServeHTTP(w, httptest.NewRequest("POST", "/checkout", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 200 paid
}

func ExampleRefuse() {
	for _, reason := range []shed.Reason{shed.QueueFull, shed.RateLimited} {
		w := httptest.NewRecorder()
		shop(admissiontest.Refuse(reason)).ServeHTTP(w, httptest.NewRequest("POST", "/checkout", nil))
		fmt.Println(w.Code, w.Header().Get("Headgate-Reason"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 503 queue-full 1
	// 429 rate-limited 1
}
