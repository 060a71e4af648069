package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-go/headgate/shed"
)

func TestRejectionIsAnError(t *testing.T) {
	err := fmt.Errorf("checkout: %w", &Rejection{Reason: shed.RateLimited, RetryAfter: 1500 * time.Millisecond, Policy: "tenant"})
	if !errors.Is(err, shed.RateLimited) || errors.Is(err, shed.QueueFull) {
		t.Error("errors.Is does not find exactly the reason")
	}
	var e *Rejection
	if !errors.As(err, &e) || e.Policy != "tenant" {
		t.Errorf("errors.As found %+v", e)
	}
	if got, want := e.Error(), `headgate: rate-limited by "tenant", retry after 2 s`; got != want {
		t.Errorf("Error = %q; want %q", got, want)
	}
	if got, want := (&Rejection{Reason: shed.NotAdmissible}).Error(), "headgate: not-admissible"; got != want {
		t.Errorf("Error = %q; want %q", got, want)
	}
}

func TestUnknownHeadersAreAnError(t *testing.T) {
	if _, err := New(Options{HTTP: HTTP{RateLimitHeaders: 8}}); err == nil || !strings.Contains(err.Error(), "Options.HTTP.RateLimitHeaders: unknown bits 0x8") {
		t.Errorf("unknown set: %v", err)
	}
	if _, err := New(Options{HTTP: HTTP{RateLimitHeaders: IETFDraft11 | XRateLimit}}); err != nil {
		t.Error(err)
	}
}
