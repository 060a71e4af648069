package outbound_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/ratelimit"
)

func TestRetriesKeepToWhatIsSafe(t *testing.T) {
	const post, patch, put = http.MethodPost, http.MethodPatch, http.MethodPut
	for name, c := range map[string]struct {
		method string
		answer http.HandlerFunc
		key    bool // with an Idempotency-Key
		once   bool // the body cannot be had again
		want   int  // attempts
	}{
		"POST refused":           {post, says(503), false, false, 3},
		"POST throttled":         {post, says(429), false, false, 3},
		"POST failed":            {post, says(500), false, false, 1},
		"POST failed, with key":  {post, says(500), true, false, 3},
		"PATCH failed":           {patch, says(502), false, false, 1},
		"PUT failed":             {put, says(502), false, false, 3},
		"PUT with a live body":   {put, says(502), false, true, 1},
		"PUT, not found":         {put, says(404), false, false, 1},
		"asked not to":           {put, says(503, "Stripe-Should-Retry", "false"), false, false, 1},
		"pushed back":            {put, says(503, "grpc-retry-pushback-ms", "-1"), false, false, 1},
		"retried behind already": {put, says(503, "Headgate-Retried", "1"), false, false, 1},
		"quota of a day":         {put, says(409, "x-ms-error-code", "QuotaExceeded"), false, false, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			s := &script{steps: []http.HandlerFunc{c.answer}}
			rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)})
			var body io.Reader = strings.NewReader("body")
			if c.once {
				body = io.NopCloser(body)
			}
			req, _ := http.NewRequest(c.method, "http://service.test/", body)
			if c.key {
				req.Header.Set("Idempotency-Key", "1")
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if s.attempts() != c.want {
				t.Errorf("%d attempts, want %d", s.attempts(), c.want)
			}
		})
	}
}

func TestABudgetAlsoBoundsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(500)}}
		rt := outbound.MustNew(outbound.Options{
			Base:   serve(t, s.ServeHTTP),
			Budget: pacer.BudgetOptions{Ratio: 0.2, Floor: pacer.NoBudget},
			Retry:  outbound.RetryOptions{Attempts: 10, MaxBackoff: 20 * time.Millisecond},
		})
		const calls = 500
		for range calls {
			if status, _, err := get(t, t.Context(), rt); err != nil || status != 500 {
				t.Fatal(status, err)
			}
		}
		if n := s.attempts(); n > calls*6/5 || n < calls*11/10 {
			t.Errorf("%d attempts for %d calls, want up to a fifth more", n, calls)
		}
	})
}

func TestDocumentsSayTheBudgetInForce(t *testing.T) {
	p, err := pacer.New(pacer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := p.Operation(ratelimit.Key{Space: "x"})
	before := o.Stats().RetryLeft
	for range 100 {
		o.StartCall()
	}
	share := fmt.Sprintf("%.0f %%", o.Stats().RetryLeft-before)
	for _, page := range []string{"doc.go", "../docs/runbook.md", "../docs/calling-others.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), share) || strings.Contains(string(text), "It is a tenth") {
			t.Errorf("%s does not say that retries are %s of the calls", page, share)
		}
	}
}
