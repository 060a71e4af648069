package edge

import (
	"net/http/httptest"
	"testing"
)

// Case ED-12: tried on the product
func TestTheAdminPortAnswersOnlyHostsItKnows(t *testing.T) {
	e, _, _ := started(t, says(""), "admin: edge.internal:9180\nadmin_hosts: [Edge.Example, \"other:9\"]\n")
	admin := e.admin()
	for host, want := range map[string]int{
		"127.0.0.1:9180": 200, "127.0.0.1": 200, "[::1]:9180": 200, "10.1.2.3:9180": 200, "localhost:9180": 200, "LOCALHOST.": 200,
		"edge.internal:9180": 200, "edge.example": 200, "other": 200,
		"attacker.example:9180": 421, "127.0.0.1.attacker.example": 421, "localhost.attacker.example": 421, "": 421, "a:b:c": 421,
	} {
		for _, path := range []string{"/livez", "/metrics", "/headgate/"} {
			r := httptest.NewRequest("GET", path, nil)
			r.Host = host
			w := httptest.NewRecorder()
			admin.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s of host %q: %d, want %d", path, host, w.Code, want)
			}
		}
	}
}
