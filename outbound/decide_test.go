package outbound_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/headgate-go/headgate/outbound"
)

func TestNoAttemptBeginsAfterMaxElapsed(t *testing.T) {
	for _, c := range []struct {
		name       string
		retryAfter string
		took       time.Duration // each attempt
		attempts   int
	}{
		{"a hint beyond it", "6", 0, 1},
		{"a first attempt that took as long", "0", 2 * time.Second, 1},
		{"hints within it, not together", "1", 0, 2},
	} {
		bubble(t, c.name, func(t *testing.T) {
			attempts, began := 0, time.Now()
			base := tripper(func(r *http.Request) (*http.Response, error) {
				attempts++
				time.Sleep(c.took)
				return answer(r, 503, "Retry-After", c.retryAfter), nil
			})
			rt := outbound.MustNew(outbound.Options{Base: base, Retry: outbound.RetryOptions{
				Attempts: 9, MaxBackoff: 50 * time.Millisecond, MaxElapsed: 1500 * time.Millisecond,
			}})
			if status, _, err := get(t, t.Context(), rt); err != nil || status != 503 {
				t.Fatal(status, err)
			}
			if attempts != c.attempts {
				t.Errorf("%d attempts, want %d", attempts, c.attempts)
			}
			if waited := time.Since(began) - time.Duration(attempts)*c.took; waited > 1500*time.Millisecond {
				t.Errorf("held for %v", waited)
			}
		})
	}
	if _, err := outbound.New(outbound.Options{Retry: outbound.RetryOptions{MaxElapsed: -1}}); err == nil {
		t.Error("a negative MaxElapsed was accepted")
	}
}
