package admission_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate-go/headgate/admission"
)

// timeLeft asks a service with the given option how long a request may take.
func timeLeft(d admission.Deadline, header, value string) string {
	gate := admission.MustNew(admission.Options{Deadline: d})
	defer gate.Close()
	service := gate.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadline, ok := r.Context().Deadline()
		if !ok {
			fmt.Fprint(w, "no deadline")
			return
		}
		fmt.Fprint(w, time.Until(deadline).Round(100*time.Millisecond))
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set(header, value)
	w := httptest.NewRecorder()
	service.ServeHTTP(w, r)
	return w.Body.String()
}

func ExampleTimeoutHeader() {
	d := admission.TimeoutHeader("X-Timeout", 5*time.Second)
	fmt.Println(timeLeft(d, "X-Timeout", "2000"))
	fmt.Println(timeLeft(d, "X-Timeout", "1.5s"))
	fmt.Println(timeLeft(d, "X-Timeout", "an hour")) // unreadable: the maximum
	fmt.Println(timeLeft(d, "X-Timeout", "1h"))      // more than the maximum
	// Output:
	// 2s
	// 1.5s
	// 5s
	// 5s
}

func ExampleGRPCTimeout() {
	fmt.Println(timeLeft(admission.GRPCTimeout(time.Minute), "grpc-timeout", "3S"))
	// Output: 3s
}

func ExampleEnvoyTimeout() {
	fmt.Println(timeLeft(admission.EnvoyTimeout(time.Minute), "X-Envoy-Expected-Rq-Timeout-Ms", "15000"))
	// Output: 15s
}

func ExampleWithin() {
	fmt.Println(timeLeft(admission.Within(10*time.Second), "X-Timeout", "1")) // no header is read
	// Output: 10s
}

func ExampleDeadlines() {
	d := admission.Deadlines(admission.TimeoutHeader("X-Timeout", 10*time.Second), admission.GRPCTimeout(8*time.Second))
	fmt.Println(timeLeft(d, "grpc-timeout", "5S"))
	fmt.Println(timeLeft(d, "X-Timeout", "9s")) // no grpc-timeout: its maximum is the smaller
	// Output:
	// 5s
	// 8s
}
