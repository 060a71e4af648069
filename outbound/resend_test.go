package outbound_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/outbound/verdict"
	"github.com/headgate-go/headgate/ratelimit"
)

func TestRedirectsAndRetriesPay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(302, "Location", "/there"), says(503), says(200)}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP), Rate: ratelimit.PerKey(1, 3)})
		resp, err := (&http.Client{Transport: rt}).Get("http://service.test/")
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		if o := operation(t, rt); o.Attempts != 3 || o.Retries != 1 || o.Ended[verdict.Overloaded] != 1 || o.Ended[verdict.OK] != 2 {
			t.Errorf("%+v", o)
		}
	})
}

func TestRedirectsAreChargedToTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []http.HandlerFunc{says(302, "Location", "/a"), says(307, "Location", "/b"), says(200)}}
		rt := outbound.MustNew(outbound.Options{Base: serve(t, s.ServeHTTP)})
		visit := func(job *outbound.Attempts) error {
			req := newRequest(t, "http://service.test/").WithContext(job.Context(t.Context()))
			resp, err := (&http.Client{Transport: rt}).Do(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		enough := outbound.NewAttempts(3)
		if err := visit(enough); err != nil || enough.Used() != 3 {
			t.Errorf("%d used, %v; want the call and its two redirects", enough.Used(), err)
		}
		s.at = nil
		var refusal *pacer.Refusal
		if err := visit(outbound.NewAttempts(2)); !errors.As(err, &refusal) || refusal.Reason != pacer.AttemptsSpent || len(s.at) != 2 {
			t.Errorf("%v after %d attempts, with a budget of two", err, len(s.at))
		}
	})
}

// deadConnections serves keep-alive connections that die after one answer, as a
// server behind an impatient proxy does.
func deadConnections(t *testing.T) *http.Transport {
	var dials atomic.Int32
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, far := net.Pipe()
		first := dials.Add(1) == 1
		go func() {
			r := bufio.NewReader(far)
			for n := 0; ; n++ {
				req, err := http.ReadRequest(r)
				if err != nil || first && n == 1 { // the second request is read, and never answered
					far.Close()
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}()
		t.Cleanup(func() { client.Close() })
		return client, nil
	}}
}

func TestWhatNetHTTPSendsAgainIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := deadConnections(t)
		rt := outbound.MustNew(outbound.Options{
			Base: base, Rate: ratelimit.PerKey(0.001, 10), CountResends: true, MaxWait: time.Second,
		})
		job := outbound.NewAttempts(100)
		for range 2 {
			if status, _, err := get(t, job.Context(t.Context()), rt); err != nil || status != 200 {
				t.Fatal(status, err)
			}
		}
		if o := operation(t, rt); o.Attempts != 3 || o.Resends != 1 || job.Used() != 3 {
			t.Errorf("%d attempts, %d resends, %d charged to the job; want 3, 1, 3", o.Attempts, o.Resends, job.Used())
		}
		for range 7 { // seven tokens are left of ten
			if _, _, err := get(t, t.Context(), rt); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := get(t, t.Context(), rt); !errors.Is(err, verdict.ErrLocal) {
			t.Errorf("the eleventh send: %v", err)
		}
		base.CloseIdleConnections()
	})
}

func TestADebtIsPaidByTheNextToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := deadConnections(t)
		rt := outbound.MustNew(outbound.Options{Base: base, Rate: ratelimit.PerKey(1, 2), CountResends: true})
		for range 2 { // the second is sent twice, with an empty bucket
			if _, _, err := get(t, t.Context(), rt); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if _, _, err := get(t, t.Context(), rt); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("the next call waited %v, %v; want 1 s for the debt and 1 s for itself", time.Since(start), err)
		}
		base.CloseIdleConnections()
	})
}

func TestWhatNeverLeftIsNotCharged(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for _, counting := range []bool{false, true} {
		bubble(t, fmt.Sprint("counting resends ", counting), func(t *testing.T) {
			fail := true
			rt := outbound.MustNew(outbound.Options{
				Rate: ratelimit.PerKey(0.001, 1), MaxWait: time.Second, CountResends: counting,
				Retry: outbound.RetryOptions{Attempts: 1},
				Base: tripper(func(r *http.Request) (*http.Response, error) {
					if fail {
						return nil, refused
					}
					return answer(r, 200), nil
				}),
			})
			job := outbound.NewAttempts(1)
			for range 5 {
				if _, _, err := get(t, job.Context(t.Context()), rt); !errors.Is(err, refused) {
					t.Fatalf("error %v", err)
				}
			}
			fail = false
			if status, _, err := get(t, job.Context(t.Context()), rt); err != nil || status != 200 {
				t.Errorf("status %d, error %v: the only token is gone", status, err)
			}
			if o := operation(t, rt); o.Attempts != 1 || job.Used() != 1 {
				t.Errorf("%d attempts, %d charged to the job", o.Attempts, job.Used())
			}
		})
	}
}

// A base that tells nothing of what it sends has not proved that nothing was sent.
func TestASilentBaseIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := outbound.MustNew(outbound.Options{
			Rate: ratelimit.PerKey(0.001, 1), MaxWait: time.Second, CountResends: true,
			Retry: outbound.RetryOptions{Attempts: 1},
			Base:  tripper(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }),
		})
		if _, _, err := get(t, t.Context(), rt); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		if _, _, err := get(t, t.Context(), rt); !errors.Is(err, verdict.ErrLocal) {
			t.Errorf("the token came back: %v", err)
		}
	})
}
