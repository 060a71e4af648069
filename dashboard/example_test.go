package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/dashboard"
	"github.com/headgate-go/headgate/outbound"
)

func ExampleHandler() {
	gate := admission.MustNew(admission.Options{})
	billing := outbound.MustNew(outbound.Options{Name: "billing"})

	mux := http.NewServeMux()
	mux.Handle("/headgate/", dashboard.Handler( // outside of the gate
		dashboard.Title("orders, eu-west"),
		dashboard.Gate(gate),
		dashboard.Outbound("billing", billing),
	))
	mux.Handle("/", gate.Handler(http.NotFoundHandler()))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/headgate/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

func ExampleGuard() {
	page := dashboard.Handler(dashboard.Guard(func(r *http.Request) bool {
		user, password, ok := r.BasicAuth()
		return ok && user == "ops" && password == "secret" // compare in constant time, in earnest
	}))
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code)
	// Output: 403
}
