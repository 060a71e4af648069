package outbound_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
)

// bubble runs f on fake time in a subtest.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// Case OB-01: clients that hung or retried at once on Retry-After dates
func TestARetryAfterDateIsWaitedForAndAPastOneIsNot(t *testing.T) {
	run := func(t *testing.T, value func() string) time.Duration {
		s := &script{steps: []http.HandlerFunc{
			func(w http.ResponseWriter, r *http.Request) { says(503, "Retry-After", value())(w, r) },
			says(200),
		}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)})
		status, _, err := get(t, t.Context(), rt)
		if err != nil || status != 200 || s.attempts() != 2 {
			t.Fatalf("status %d, error %v, %d attempts", status, err, s.attempts())
		}
		return s.gaps()[0]
	}
	date := func(d time.Duration) func() string {
		return func() string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	}
	bubble(t, "a date to come is waited for", func(t *testing.T) {
		if gap := run(t, date(3*time.Second)); gap < 3*time.Second || gap > 4*time.Second+300*time.Millisecond {
			t.Errorf("second attempt after %v", gap)
		}
	})
	for name, value := range map[string]func() string{
		"a date past": date(-time.Hour),
		"negative":    func() string { return "-1" },
	} {
		bubble(t, name+" means the usual backoff", func(t *testing.T) {
			if gap := run(t, value); gap < 10*time.Millisecond || gap > time.Second {
				t.Errorf("second attempt after %v", gap)
			}
		})
	}
}

// Case OB-03: servers that send Retry-After as a decimal, or twice
func TestDecimalAndRepeatedHintsAreNeverCutShort(t *testing.T) {
	for _, c := range []struct {
		values []string
		least  time.Duration
	}{
		{[]string{"1.5"}, 1500 * time.Millisecond},
		{[]string{"0.5"}, 500 * time.Millisecond},
		{[]string{"2", "5"}, 5 * time.Second}, // the largest: no line is broken
	} {
		bubble(t, fmt.Sprint(c.values), func(t *testing.T) {
			var fields []string
			for _, v := range c.values {
				fields = append(fields, "Retry-After", v)
			}
			s := &script{steps: []http.HandlerFunc{says(429, fields...), says(200)}}
			status, _, err := get(t, t.Context(), outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)}))
			if err != nil || status != 200 {
				t.Fatal(status, err)
			}
			if gap := s.gaps()[0]; gap < c.least || gap > c.least+2*time.Second {
				t.Errorf("second attempt after %v, want %v and a little", gap, c.least)
			}
		})
	}
}

// Case OU-04: tried on the product
// Case OB-05: hashicorp/go-retryablehttp#248
func TestAHintBeyondTheDeadlineReturnsAtOnce(t *testing.T) {
	for _, c := range []struct {
		hint     string
		deadline time.Duration
	}{{"86400", 0}, {"86400", 5 * time.Second}, {"18446744073709551616", 0}, {"315360001", 0}, {"99999999999999999999999999999999999999999", 0}} {
		deadline := c.deadline
		bubble(t, fmt.Sprint(c.hint, ", deadline ", deadline), func(t *testing.T) {
			s := &script{steps: []http.HandlerFunc{says(429, "Retry-After", c.hint)}}
			rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP), MaxWait: time.Minute})
			ctx := t.Context()
			if deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, deadline)
				defer cancel()
			}
			start := time.Now()
			status, body, err := get(t, ctx, rt)
			if err != nil || status != 429 || body != http.StatusText(429) {
				t.Fatalf("status %d, body %q, error %v", status, body, err)
			}
			if took := time.Since(start); took > 100*time.Millisecond || s.attempts() != 1 {
				t.Errorf("returned after %v and %d attempts", took, s.attempts())
			}
			if left := rt.Stats().Operations[0].PauseLeft; left < 59*time.Minute {
				t.Errorf("all calls stay away for %v, want the longest pause", left)
			}
		})
	}
}

// Case OB-07: clients that sent an empty body the second time
func TestEveryAttemptSendsTheSameBody(t *testing.T) {
	bubble(t, "three identical bodies", func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(503), says(503), says(200)}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP), AttemptTimeout: time.Second})
		want := strings.Repeat("0123456789abcdef", 64)
		client := http.Client{Transport: rt}
		resp, err := client.Post("http://service.test/", "text/plain", strings.NewReader(want))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != 200 || s.attempts() != 3 {
			t.Errorf("status %d after %d attempts", resp.StatusCode, s.attempts())
		}
		for i, got := range s.bodys {
			if got != want {
				t.Errorf("attempt %d brought %d bytes, want the same %d", i+1, len(got), len(want))
			}
		}
	})
}

// Case OB-10: clients that left error bodies unread, or read them for ever
func TestARetryKeepsItsConnectionAndAnEndlessBodyHoldsNothing(t *testing.T) {
	large := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		_, _ = w.Write(bytes.Repeat([]byte("x"), 10<<10))
	}
	bubble(t, "one connection does for all", func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{large, large, large, says(200)}}
		base := serve(t, s.ServeHTTP)
		base.MaxConnsPerHost = 1
		rt := outbound.MustNew(outbound.Options{Base: base, Retry: outbound.RetryOptions{Attempts: 4}})
		status, _, err := get(t, t.Context(), rt)
		if err != nil || status != 200 || base.dials.Load() != 1 {
			t.Errorf("status %d, error %v, %d connections", status, err, base.dials.Load())
		}
	})
	bubble(t, "a body without end does not hold the call", func(t *testing.T) {
		endless := func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(503)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		s := &script{steps: []http.HandlerFunc{endless, endless, says(200)}}
		base := serve(t, s.ServeHTTP)
		base.MaxConnsPerHost = 1
		start := time.Now()
		status, _, err := get(t, t.Context(), outbound.MustNew(outbound.Options{Base: base}))
		if err != nil || status != 200 || time.Since(start) > 5*time.Second {
			t.Errorf("status %d, error %v after %v", status, err, time.Since(start))
		}
	})
}

// Case OB-11: clients that slept after the last attempt
func TestACancelledBackoffEndsAtOnceAndTheLastAttemptIsNotFollowedByOne(t *testing.T) {
	bubble(t, "a cancelled wait ends at once", func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(503, "Retry-After", "10")}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		start := time.Now()
		_, _, err := get(t, ctx, rt)
		if took := time.Since(start); !errors.Is(err, context.Canceled) || took > 150*time.Millisecond {
			t.Errorf("error %v after %v", err, took)
		}
	})
	bubble(t, "nothing is waited for after the last attempt", func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(503, "Retry-After", "10")}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP), Retry: outbound.RetryOptions{Attempts: 2}})
		status, _, err := get(t, t.Context(), rt)
		if err != nil || status != 503 || s.attempts() != 2 {
			t.Fatal(status, err, s.attempts())
		}
		if late := time.Since(s.at[1]); late > 50*time.Millisecond {
			t.Errorf("returned %v after the last attempt", late)
		}
	})
}
