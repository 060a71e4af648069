package admission_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/admission"
	"github.com/headgate-go/headgate/admission/caller"
	"github.com/headgate-go/headgate/ratelimit"
	"github.com/headgate-go/headgate/shed"
)

// TestStrangersAreLimitedLikeAnybodyElse: whatever a client sends in place of an
// identity, it has one bucket, and it never gets an error of the server's making.
func TestStrangersAreLimitedLikeAnybodyElse(t *testing.T) {
	huge := strings.Repeat("9", 1<<20)
	for name, c := range map[string]struct {
		addr    string
		headers []string
	}{
		"no identity":         {"192.0.2.1:1234", nil},
		"a unix socket":       {"@", nil},
		"no address at all":   {"", nil},
		"no port":             {"192.0.2.1", nil},
		"1 MB of key":         {"192.0.2.1:1234", []string{"X-API-Key", huge}},
		"1 MB of deadline":    {"192.0.2.1:1234", []string{"X-Timeout", huge}},
		"1 MB of priority":    {"192.0.2.1:1234", []string{"X-Priority", huge}},
		"1 MB of forwarding":  {"192.0.2.1:1234", []string{"X-Forwarded-For", huge}},
		"control characters":  {"192.0.2.1:1234", []string{"X-API-Key", "a\x00b"}},
		"two keys":            {"192.0.2.1:1234", []string{"X-API-Key", "a", "X-API-Key", "b"}},
		"a deadline of zero":  {"192.0.2.1:1234", []string{"X-Timeout", "0"}},
		"a negative deadline": {"192.0.2.1:1234", []string{"X-Timeout", "-5s"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := admission.MustNew(admission.Options{
				Identify: caller.APIKey("X-API-Key", func(context.Context, string) (caller.Caller, bool) {
					return caller.Caller{}, false
				}),
				Rate:     ratelimit.PerKey(0, 3),
				Deadline: admission.TimeoutHeader("X-Timeout", time.Second),
				HTTP:     admission.HTTP{LevelHeader: "X-Priority"},
			})
			passed := 0
			for range 10 {
				r := request("GET", "/", c.headers...)
				r.RemoteAddr = c.addr
				switch w := do(g.Handler(okHandler()), r); w.Code {
				case 200:
					passed++
				case 429:
				default:
					t.Fatalf("answer = %d", w.Code)
				}
			}
			if passed != 3 {
				t.Errorf("passed = %d, want the burst of 3", passed)
			}
		})
	}
}

func TestRejectionForNoReasonIsUnidentified(t *testing.T) {
	for _, reason := range []shed.Reason{shed.Admitted, shed.Exempt, shed.Reason(shed.ReasonCount), 255} {
		g := admission.MustNew(admission.Options{Identify: func(*http.Request) (caller.Caller, error) {
			return caller.Caller{}, &admission.Rejection{Reason: reason}
		}})
		if w := get(g.Handler(okHandler())); w.Code != http.StatusForbidden {
			t.Errorf("reason %d: status %d, want 403", reason, w.Code)
		}
	}
}
