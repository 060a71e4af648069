package outbound_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-go/headgate/outbound"
	"github.com/headgate-go/headgate/outbound/pacer"
	"github.com/headgate-go/headgate/ratelimit"
)

// A gate's 503 is learned once for all callers of the host, and waited for longer
// than a 429.
func TestFiftyCallersLearnAGatesRefusalOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived atomic.Int32
		var shut atomic.Bool
		shut.Store(true)
		base := serve(t, func(w http.ResponseWriter, r *http.Request) {
			arrived.Add(1)
			if shut.Load() {
				says(503, "Headgate-Reason", "queue-full", "Retry-After", "3")(w, r)
			}
		})
		rt := outbound.MustNew(outbound.Options{
			Base: base, Key: func(r *http.Request) ratelimit.Key {
				return ratelimit.Key{Space: r.URL.Host, ID: r.URL.Path}
			},
		})
		time.AfterFunc(2*time.Second, func() { shut.Store(false) })
		if status, _, err := get(t, shortly(t, time.Second), rt); err != nil || status != 503 {
			t.Fatal(status, err)
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://service.test/"+strconv.Itoa(i%5), nil)
				resp, err := rt.RoundTrip(req)
				if err != nil || resp.StatusCode != 200 {
					t.Error(resp, err)
					return
				}
				resp.Body.Close()
			})
		}
		synctest.Wait()
		if n := arrived.Load(); n != 1 {
			t.Errorf("%d calls arrived at a shut gate, want the one that found out", n)
		}
		wg.Wait()
		if n := arrived.Load(); n != 51 {
			t.Errorf("%d calls arrived in all", n)
		}
	})
}

func shortly(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A service that passes a refusal from behind on to the front has retried it
// already; the front slows down and leaves it at that.
func TestOneRefusalIsRetriedOnceInAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := &script{steps: []http.HandlerFunc{says(503, "Headgate-Reason", "capacity", "Retry-After", "1")}}
		toBack := outbound.MustNew(outbound.Options{Base: serve(t, back.ServeHTTP)})
		middle := &script{steps: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			req, _ := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://back.test/", nil)
			resp, err := toBack.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if !outbound.Relay(w.Header(), resp, err) {
				t.Error("not a refusal")
			}
			w.WriteHeader(resp.StatusCode)
		}}}
		toMiddle := outbound.MustNew(outbound.Options{Base: serve(t, middle.ServeHTTP)})
		status, _, err := get(t, t.Context(), toMiddle)
		if err != nil || status != 503 || middle.attempts() != 1 || back.attempts() != 3 {
			t.Errorf("status %d, error %v, %d attempts in front, %d behind; want 1 and 3", status, err, middle.attempts(), back.attempts())
		}
		if o := operation(t, toMiddle); o.Cuts != 1 || o.PauseLeft == 0 {
			t.Errorf("the front does not slow down: %+v", o)
		}
	})
}

func TestWhatIsRelayed(t *testing.T) {
	for _, resp := range []*http.Response{nil, answer(nil, 200), answer(nil, 404)} {
		if h := (http.Header{}); outbound.Relay(h, resp, nil) || len(h) != 0 {
			t.Errorf("%v was relayed as %v", resp, h)
		}
	}
	for _, err := range []error{context.Canceled, &pacer.Refusal{Reason: pacer.BreakerOpen}} {
		if h := (http.Header{}); outbound.Relay(h, nil, err) || len(h) != 0 {
			t.Errorf("%v was relayed as %v", err, h)
		}
	}
	h := http.Header{}
	paused := fmt.Errorf("push: %w", &pacer.Refusal{Reason: pacer.Paused, Wait: 2100 * time.Millisecond})
	if !outbound.Relay(h, nil, paused) || h.Get("Retry-After") != "3" || h.Get("Headgate-Retried") == "" {
		t.Errorf("a pause was relayed as %v", h)
	}
}
